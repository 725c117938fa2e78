"""Reading raw text: row numbers, line ends, byte order marks, and what is rejected or refused."""

from pathlib import Path

import pytest

from passerelle.corpus.read import EMPTY_LINE, LINE_TOO_LONG, MALFORMED_LINE, Pair, Rejected, read_pairs


def read(path: Path, content: bytes, max_line_bytes: int = 1000, max_pairs: int | None = None) -> list:
    path.write_bytes(content)
    return list(read_pairs(path, max_line_bytes=max_line_bytes, max_pairs=max_pairs))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pairs.txt"


@pytest.mark.parametrize(
    "content",
    [
        b"Go.\tVa.\nHi.\tSalut.\n",
        b"Go.\tVa.\nHi.\tSalut.",
        b"Go.\tVa.\r\nHi.\tSalut.\r\n",
        b"Go.\tVa.\r\nHi.\tSalut.",
        b"\xef\xbb\xbfGo.\tVa.\nHi.\tSalut.\n",
        b"\xef\xbb\xbfGo.\tVa.\tCC-BY (Tom)\r\nHi.\tSalut.\tCC-BY (Ann)",
    ],
)
def test_line_ends_mark_and_third_column_do_not_change_the_pairs(path: Path, content: bytes) -> None:
    assert read(path, content) == [Pair(0, "Go.", "Va."), Pair(1, "Hi.", "Salut.")]


@pytest.mark.parametrize("separator", ["\r", "\x85", "\u2028", "\u2029", "\v", "\f", "\x1c"])
def test_only_a_line_feed_ends_a_line(path: Path, separator: str) -> None:
    content = f"a{separator}b\tc{separator}d\nx\ty\n".encode()
    assert read(path, content) == [Pair(0, f"a{separator}b", f"c{separator}d"), Pair(1, "x", "y")]


def test_lines_that_are_no_pair_are_rejected_and_rows_keep_their_numbers(path: Path) -> None:
    items = read(path, b"a\tb\n\nlonely\n \t \n1\t2\t3\t4\r\nc\t\n\td\n")
    assert items == [
        Pair(0, "a", "b"),
        Rejected(1, EMPTY_LINE, ""),
        Rejected(2, MALFORMED_LINE, "lonely"),
        Rejected(3, EMPTY_LINE, " \t "),
        Rejected(4, MALFORMED_LINE, "1\t2\t3\t4"),
        Pair(5, "c", ""),
        Pair(6, "", "d"),
    ]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize(
    ("size", "is_kept"), [(20, True), (21, False), (22, False), (23, False), (500, False)]
)
def test_a_line_over_the_limit_is_rejected_and_the_next_is_read(
    path: Path, end: bytes, size: int, is_kept: bool
) -> None:
    line = b"a\t" + b"b" * (size - 2)
    items = read(path, b"x\ty\n" + line + end + (b"c\td\n" if end else b""), max_line_bytes=20)
    assert items[0] == Pair(0, "x", "y")
    assert items[1] == (
        Pair(1, "a", "b" * (size - 2)) if is_kept else Rejected(1, LINE_TOO_LONG, line[:20].decode())
    )
    assert items[2:] == ([Pair(2, "c", "d")] if end else [])


def test_a_carriage_return_at_the_limit_does_not_hide_an_over_long_line(path: Path) -> None:
    items = read(path, b"a\t" + b"b" * 18 + b"\r" + b"c" * 40 + b"\nx\ty\n", max_line_bytes=20)
    assert [type(item) for item in items] == [Rejected, Pair]


def test_an_over_long_line_is_cut_between_characters(path: Path) -> None:
    items = read(path, b"a\tb\n" + "é".encode() * 30 + b"\n", max_line_bytes=21)
    assert items[1] == Rejected(1, LINE_TOO_LONG, "é" * 10)


def test_max_pairs_reads_that_many_lines(path: Path) -> None:
    assert read(path, b"a\tb\n\nc\td\n\xff\n", max_pairs=2) == [
        Pair(0, "a", "b"),
        Rejected(1, EMPTY_LINE, ""),
    ]


def test_a_file_that_is_not_utf8_is_refused_with_the_line_number(path: Path) -> None:
    content = b"Go.\tVa.\nSummer\t" + "été".encode("latin-1") + b"\n"
    with pytest.raises(ValueError, match=r"pairs\.txt:2: not UTF-8 \(byte 8 of the line is 0xe9\); convert"):
        read(path, content)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_is_named(path: Path, encoding: str) -> None:
    content = ("\ufeff" if encoding.endswith("be") else "") + "Go.\tVa.\n"
    with pytest.raises(ValueError, match=r"pairs\.txt:1: not UTF-8 \(it looks like UTF-16\)"):
        read(path, content.encode(encoding))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"pairs\.txt: the file is empty; expected a line `source<TAB>target`"),
        (b"\xef\xbb\xbf", r"pairs\.txt: the file is empty"),
        (b"Go. Va.\n\nHi,Salut\n", r"pairs\.txt: no tab in any of its 3 lines; expected `source<TAB>target`"),
        (b"a\tb\tc\td\n", r"none of its 1 lines is a sentence pair \(line 1: malformed line\)"),
        (b"\n \na\tb\tc\td\n", r"none of its 3 lines is a sentence pair \(line 1: empty line\)"),
    ],
)
def test_a_file_without_a_pair_is_refused(path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(path, content)
