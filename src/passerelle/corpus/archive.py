"""The sentence-pair text inside a file: a .zip with one text, a .gz, or the plain text itself.

What a file is shows in its first bytes, not in its name: downloads are misnamed too often. Nothing is
extracted under a name that the archive chose, and never more than a given number of bytes.
"""

import gzip
import hashlib
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from passerelle.files import CHUNK_BYTES

_NOT_PAIRS = frozenset({"readme", "license", "licence", "copying", "about", "attribution"})
_HTML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|body|\?xml)[\s>]", re.IGNORECASE)
_OTHER_FORMATS = {
    b"\xfd7zXZ\x00": "an .xz file",
    b"BZh": "a .bz2 file",
    b"7z\xbc\xaf\x27\x1c": "a .7z archive",
    b"Rar!\x1a\x07": "a .rar archive",
    b"(\xb5/\xfd": "a .zst file",
    b"%PDF-": "a PDF",
}
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_TAR_MARK = slice(257, 262)


def unpack_text(path: Path, destination: Path, max_bytes: int) -> str:
    """Write the text inside `path` to `destination`, byte for byte; return its SHA-256 in hexadecimal.

    `path` is a .zip with one .txt or .tsv, a .gz, or a text. Raises ValueError, naming `path` and what to do,
    where it is damaged, encrypted, unsafe, over `max_bytes`, an HTML page, or holds no single text.
    """
    digest = hashlib.sha256()
    num_bytes = 0
    with _opened(path) as text, destination.open("wb") as file:
        for chunk in _chunks(text):
            if num_bytes == 0:
                _refuse_other_content(path, chunk)
            num_bytes += len(chunk)
            if num_bytes > max_bytes:
                raise ValueError(
                    f"{path}: its text has more than corpus.max_bytes={max_bytes} bytes; raise that in "
                    "params.yaml if the file is what you want"
                )
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """The text inside `path` as a stream; faults of its container become ValueErrors that name it."""
    with path.open("rb") as file:
        start = file.read(4)
    again = "fetch or copy the file again"
    try:
        if start in _ZIP_MARKS:
            with ExitStack() as stack:
                yield _zipped(path, stack)
        elif start.startswith(b"\x1f\x8b"):
            with gzip.open(path) as text:
                yield text
        else:
            with path.open("rb") as text:
                yield text
    except EOFError:
        raise ValueError(f"{path}: truncated; {again}") from None
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: truncated or damaged zip ({error}); {again}") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: damaged ({error}); {again}") from None


def _zipped(path: Path, stack: ExitStack) -> IO[bytes]:
    """The text inside a zip, closed with the stack."""
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
        return stack.enter_context(archive.open(_text_member(path, archive)))
    except NotImplementedError as error:
        raise ValueError(f"{path}: {error}; repack it as an ordinary zip") from None
    except (UnicodeDecodeError, OSError) as error:  # no text as a name, a place before the file's beginning
        raise zipfile.BadZipFile(str(error)) from None


def _text_member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The archive's one text, once nothing speaks against opening it."""
    for member in archive.infolist():
        name = member.filename.replace("\\", "/")
        if name.startswith("/") or re.match("[A-Za-z]:", name) or ".." in name.split("/"):
            raise ValueError(
                f"{path}: its member {member.filename[:60]!r} would leave the folder it is unpacked in; do not "
                "use this archive, or unpack it yourself and give the text"
            )
    texts = [member for member in archive.infolist() if _may_be_pairs(member)]
    if len(texts) != 1:
        names = [_shown(member) for member in texts or archive.infolist()]
        listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "") or "nothing"
        found = f"{len(texts)} texts that may be the sentence pairs" if texts else "no .txt or .tsv"
        raise ValueError(f"{path}: expected one text, found {found} ({listed}); unpack it, give the text")
    text = texts[0]
    if text.flag_bits & 0x1:
        raise ValueError(f"{path}: {_shown(text)} is encrypted; unpack it yourself and give the text")
    if text.compress_type not in _METHODS:  # of the others zipfile unpacks as much at once as they hold
        raise ValueError(
            f"{path}: {_shown(text)} is compressed by another method than deflate; repack it as an ordinary zip"
        )
    return text


def _shown(member: zipfile.ZipInfo) -> str:
    """Its name on one line, and not endless."""
    name = member.filename
    return name if name.isprintable() and len(name) <= 60 else repr(name[:60])


def _may_be_pairs(member: zipfile.ZipInfo) -> bool:
    name = PurePosixPath(member.filename)
    return (
        name.suffix.lower() in (".txt", ".tsv")
        and not member.is_dir()
        and not stat.S_ISLNK(member.external_attr >> 16)
        and "__MACOSX" not in name.parts
        and not name.name.startswith((".", "_"))
        and name.stem.lower() not in _NOT_PAIRS
    )


def _chunks(text: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    while chunk := text.read(CHUNK_BYTES):
        yield chunk


def _refuse_other_content(path: Path, start: bytes) -> None:
    """Raise ValueError where the first bytes of the text show that it is something else."""
    if _HTML.match(start):
        raise ValueError(
            f"{path}: an HTML page, not sentence pairs (a download that met an error or a log-in page looks "
            "like this); fetch the file itself"
        )
    for mark, name in _OTHER_FORMATS.items():
        if start.startswith(mark):
            raise ValueError(f"{path}: {name}; give a .zip, a .gz or the plain text")
    if start[_TAR_MARK] == b"ustar":
        raise ValueError(f"{path}: a tar archive; give a .zip, a .gz or the plain text")
