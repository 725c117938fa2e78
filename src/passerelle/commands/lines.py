"""Reading text line by line, so that every line of it has its line in what a command prints."""

from collections.abc import Iterator
from itertools import count
from typing import BinaryIO

MAX_LINE_BYTES = 1_000_000
"""A longer line is no text to be translated, but would fill the memory."""


def read_lines(file: BinaryIO, name: object) -> Iterator[str]:
    """Lines end with LF alone; other separators are spaces, of which cleaning leaves none at the ends.

    name says in a ValueError for what is not UTF-8, or over 1,000,000 bytes, where that is.
    """
    for number in count(1):
        line = file.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(
                f"{name}, line {number}: over {MAX_LINE_BYTES} bytes; put one sentence or paragraph on a line"
            )
        try:
            yield line.decode().rstrip("\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: not UTF-8 at byte {error.start + 1}; save it as UTF-8"
            ) from None
