"""The text inside archives: what works, and what is refused with a message that says what to do."""

import bz2
import gzip
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from passerelle.corpus.archive import unpack_text

TEXT = "Go.\tVa !\r\nHé.\tSalut !\n".encode() * 50
LIMIT = 10_000


def zip_bytes(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def encrypted_zip() -> bytes:
    content = bytearray(zip_bytes({"fra.txt": TEXT}))
    content[6] |= 1  # the flag in the member's own header
    content[content.rindex(b"PK\x01\x02") + 8] |= 1  # and in the directory
    return bytes(content)


def damaged_zip() -> bytes:
    content = bytearray(zip_bytes({"fra.txt": TEXT}, zipfile.ZIP_STORED))
    content[100] ^= 1
    return bytes(content)


def link_zip() -> bytes:
    member = zipfile.ZipInfo("fra.txt")
    member.external_attr = 0o120777 << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(member, "/etc/passwd")
    return buffer.getvalue()


def offset_zip() -> bytes:
    """Its directory says that the member begins before the file does."""
    content = bytearray(zip_bytes({"fra.txt": TEXT}))
    end = content.rindex(b"PK\x05\x06")
    content[end + 16 : end + 20] = (10**9).to_bytes(4, "little")
    return bytes(content)


def misnamed_zip() -> bytes:
    content = bytearray(zip_bytes({"é.txt": TEXT}))
    content[content.rindex("é".encode())] = 0xFF
    return bytes(content)


def tar_bytes() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("fra.txt")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
    return buffer.getvalue()


def unpack(tmp_path: Path, content: bytes, max_bytes: int = LIMIT) -> tuple[str, bytes]:
    (tmp_path / "given").write_bytes(content)
    text_hash = unpack_text(tmp_path / "given", tmp_path / "text", max_bytes)
    return text_hash, (tmp_path / "text").read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        gzip.compress(TEXT),
        gzip.compress(TEXT[:99]) + gzip.compress(TEXT[99:]),
        zip_bytes({"fra.txt": TEXT}),
        zip_bytes({"pairs.TSV": TEXT}, zipfile.ZIP_STORED),
        zip_bytes({
            "fra-eng/": b"",
            "fra-eng/_about.txt": b"licence",
            "__MACOSX/fra-eng/._fra.txt": b"rubbish",
            "__MACOSX/note.txt": b"rubbish",
            "fra-eng/.hidden.txt": b"rubbish",
            "fra-eng/README.txt": b"read me",
            "fra-eng/logo.png": b"picture",
            "fra-eng/fra.txt": TEXT,
        }),
    ],
    ids=["plain", "gz", "gz of two members", "zip", "stored tsv", "zip with rubbish"],
)  # fmt: skip
def test_the_text_comes_out_byte_for_byte_with_its_hash(tmp_path: Path, content: bytes) -> None:
    assert unpack(tmp_path, content) == (hashlib.sha256(TEXT).hexdigest(), TEXT)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            zip_bytes({"fra.txt": TEXT})[:-30],
            r"given: truncated or damaged zip .*; fetch or copy the file again",
        ),
        (damaged_zip(), r"given: truncated or damaged zip \(Bad CRC-32 for file 'fra\.txt'\)"),
        (encrypted_zip(), r"given: fra\.txt is encrypted; unpack it yourself"),
        (gzip.compress(TEXT)[:-12], r"given: truncated; fetch or copy"),
        (gzip.compress(TEXT)[:5], r"given: truncated; fetch or copy"),
        (gzip.compress(TEXT)[:-8] + bytes(8), r"given: damaged \(CRC check failed.*\); fetch or copy"),
        (gzip.compress(TEXT)[:10] + b"\xff" * 40, r"given: damaged \(Error -3.*\); fetch or copy"),
        (
            zip_bytes({"a.txt": TEXT, "b/c.tsv": TEXT}),
            r"found 2 texts that may be .* \(a\.txt, b/c\.tsv\); unpack",
        ),
        (zip_bytes({"a.csv": TEXT}), r"expected one text, found no \.txt or \.tsv \(a\.csv\)"),
        (zip_bytes({f"{i}.csv": TEXT for i in range(7)}), r"\(0\.csv, 1\.csv, 2\.csv, 3\.csv, 4\.csv, …\)"),
        (zip_bytes({}), r"found no \.txt or \.tsv \(nothing\)"),
        (link_zip(), r"found no \.txt or \.tsv \(fra\.txt\)"),
        (zip_bytes({"../fra.txt": TEXT}), r"given: its member '\.\./fra\.txt' would leave the folder"),
        (zip_bytes({"fra.txt": TEXT, "a/../../x.png": b""}), r"its member 'a/\.\./\.\./x\.png' would leave"),
        (zip_bytes({"/etc/fra.txt": TEXT}), r"its member '/etc/fra\.txt' would leave"),
        (zip_bytes({"..\\fra.txt": TEXT}), r"would leave the folder"),
        (zip_bytes({"C:\\fra.txt": TEXT}), r"would leave the folder"),
        (b"<!DOCTYPE html>\n<html>\tError\n", r"given: an HTML page, not sentence pairs"),
        (b"\xef\xbb\xbf \n<HTML lang='en'>404\n", r"given: an HTML page"),
        (gzip.compress(b"<html><body>moved"), r"given: an HTML page"),
        (zip_bytes({"fra.txt": b"<?xml version='1.0'?><Error>"}), r"given: an HTML page"),
        (tar_bytes(), r"given: a tar archive; give a \.zip, a \.gz or the plain text"),
        (gzip.compress(tar_bytes()), r"given: a tar archive"),
        (offset_zip(), r"given: truncated or damaged zip \(.*\); fetch or copy the file again"),
        (misnamed_zip(), r"given: truncated or damaged zip \('utf-8' codec can't decode .*\); fetch or copy"),
        (
            zip_bytes({"fra.txt": TEXT}, zipfile.ZIP_LZMA),
            r"fra\.txt is compressed by another method than deflate",
        ),
        (
            zip_bytes({"fra.txt": TEXT}, zipfile.ZIP_BZIP2),
            r"fra\.txt is compressed by another .*; repack it as",
        ),
        (zip_bytes({"a\nb.csv": TEXT}), r"found no \.txt or \.tsv \('a\\nb\.csv'\); unpack it"),
        (bz2.compress(TEXT), r"given: a \.bz2 file; give a \.zip"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_single_sound_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        unpack(tmp_path, content, max_bytes=100_000)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda text: zip_bytes({"fra.txt": text})])
def test_a_text_over_the_limit_is_refused_however_well_it_is_packed(tmp_path: Path, pack) -> None:
    assert unpack(tmp_path, pack(b"a\tb\n" * 2500))[1] == b"a\tb\n" * 2500
    with pytest.raises(ValueError, match=r"given: its text has more than corpus\.max_bytes=10000 bytes"):
        unpack(tmp_path, pack(b"a\tb\n" * 2500 + b"\n"))


def test_a_zip_bomb_is_not_unpacked_beyond_the_limit(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"more than corpus\.max_bytes"):
        unpack(tmp_path, gzip.compress(bytes(50_000_000)))
    assert (tmp_path / "text").stat().st_size <= LIMIT
