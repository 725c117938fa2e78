"""Raw text to sentence pairs, a line at a time.

A line is what stands between two `\\n`, whatever other line separators Unicode knows: so row numbers never
shift against the file. UTF-8 with or without byte order mark, LF or CRLF, two or three columns separated by
tabs; the third, an attribution, is not read. A line that is no pair is rejected with its reason, not lost.
A column may still be empty: cleaning decides that.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

EMPTY_LINE = "empty line"
MALFORMED_LINE = "malformed line"
LINE_TOO_LONG = "line too long"

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Pair(NamedTuple):
    """A sentence and its translation; `row` is the 0-based line of the file."""

    row: int
    source: str
    target: str


class Rejected(NamedTuple):
    """A line that is not used; `row` is the 0-based line of the file, `text` the line, cut if over-long."""

    row: int
    reason: str
    text: str


def read_pairs(path: Path, *, max_line_bytes: int, max_pairs: int | None = None) -> Iterator[Pair | Rejected]:
    """The lines of `path` in order, each a Pair or Rejected; of `max_pairs` lines at most, where it is given.

    Memory is bounded by `max_line_bytes`. Raises ValueError where a line is not UTF-8 (naming it), where no
    line has a tab, and where no line at all is a pair.
    """
    num_rows = num_pairs = 0
    has_tab = False
    first_fault = None
    with path.open("rb") as file:
        for row, line in enumerate(_lines(file, max_line_bytes)):
            if row == max_pairs:
                break
            num_rows += 1
            has_tab = has_tab or b"\t" in line
            item = _parse(path, row, line, max_line_bytes)
            if isinstance(item, Pair):
                num_pairs += 1
            elif first_fault is None:
                first_fault = item
            yield item
    if num_rows == 0:
        raise ValueError(f"{path}: the file is empty; expected a line `source<TAB>target` for each pair")
    if not has_tab:
        raise ValueError(
            f"{path}: no tab in any of its {num_rows} lines; expected `source<TAB>target`, or with a third "
            "column, on each line"
        )
    if num_pairs == 0 and first_fault:
        raise ValueError(
            f"{path}: none of its {num_rows} lines is a sentence pair (line {first_fault.row + 1}: "
            f"{first_fault.reason}); expected `source<TAB>target`, or with a third column, on each line"
        )


def _lines(file: BinaryIO, max_line_bytes: int) -> Iterator[bytes]:
    """Lines without end and byte order mark; one over `max_line_bytes` comes cut, but still over it."""
    if file.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
        file.seek(0)
    limit = max_line_bytes + len(b"\r\n")
    while line := file.readline(limit):
        rest = line
        while len(rest) == limit and not rest.endswith(b"\n"):
            rest = file.readline(limit)
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _parse(path: Path, row: int, line: bytes, max_line_bytes: int) -> Pair | Rejected:
    if len(line) > max_line_bytes:
        return Rejected(row, LINE_TOO_LONG, line[:max_line_bytes].decode("utf-8", errors="ignore"))
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        is_utf16 = row == 0 and line.startswith(_UTF16_MARKS)
        byte = f"byte {error.start + 1} of the line is 0x{line[error.start]:02x}"
        found = "it looks like UTF-16" if is_utf16 else byte
        raise ValueError(
            f"{path}:{row + 1}: not UTF-8 ({found}); convert the file to UTF-8, for instance with iconv"
        ) from None
    columns = text.split("\t")
    if len(columns) in (2, 3) and not text.isspace():
        return Pair(row, columns[0], columns[1])
    return Rejected(row, MALFORMED_LINE if text.strip() else EMPTY_LINE, text)
