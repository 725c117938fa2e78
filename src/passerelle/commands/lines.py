"""Reading text line by line, so that every line of it has its line in what a command prints."""

from collections.abc import Iterator
from typing import BinaryIO


def read_lines(file: BinaryIO, name: object) -> Iterator[str]:
    """Lines end with LF alone; other separators are spaces, of which cleaning leaves none at the ends.

    name says in a ValueError for what is not UTF-8 where that is.
    """
    for number, line in enumerate(file, start=1):
        try:
            yield line.decode().rstrip("\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: not UTF-8 at byte {error.start + 1}; save it as UTF-8"
            ) from None
