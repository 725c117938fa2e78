"""Files that are written whole or not at all, and their hashes."""

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHUNK_BYTES = 1 << 20
SUFFIX = ".partial"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`; when the block ends well, its file is synced and takes the name `path`.

    When the block raises, the temporary file is removed and whatever stood at `path` is untouched.
    """
    with temporary_beside(path) as temporary:
        yield temporary
        _sync(temporary)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
        _sync(path.parent)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path`; when the block ends well, its files are synced and it replaces `path`.

    When the block raises, the temporary folder is removed and whatever stood at `path` is untouched.
    """
    with temporary_beside(path, is_folder=True) as temporary:
        yield temporary
        for member in sorted(temporary.rglob("*")):
            member.chmod((0o777 if member.is_dir() else 0o666) & ~_umask())  # some libraries write 0o600
            _sync(member)
        temporary.chmod(0o777 & ~_umask())
        if path.exists():
            with temporary_beside(path, is_folder=True) as old:
                _exchange(temporary, path, old)
        else:
            temporary.replace(path)
        _sync(path.parent)


@contextmanager
def temporary_beside(path: Path, is_folder: bool = False) -> Iterator[Path]:
    """A new file or folder of a name like that of `path`, in its folder; removed in the end, unless renamed before.

    Those that a killed process left there for the same `path` are removed too. Where the disk is full or cannot be
    written, the OSError names `path`, or what should have stood below it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_behind(path)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}{SUFFIX}"
    descriptor = None
    try:
        descriptor = _create(temporary, is_folder)
        yield temporary
    except Exception as error:  # whatever a library raises where it cannot write
        if (named := _about_output(error, temporary, path)) is None:
            raise
        raise named from error
    finally:
        _remove(temporary)
        if descriptor is not None:
            os.close(descriptor)


def write_json(path: Path, content: Any) -> None:
    """Write `content` as indented UTF-8 JSON with a final newline; the same content gives the same bytes."""
    with whole_file(path) as temporary:
        text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def sha256_of_file(path: Path) -> str:
    """Hexadecimal SHA-256 of the file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_of_tree(path: Path) -> str:
    """Hexadecimal SHA-256 of a file, or of the names and contents of all files below a folder."""
    if path.is_file():
        return sha256_of_file(path)
    files = sorted(member for member in path.rglob("*") if member.is_file())
    lines = [f"{sha256_of_file(member)} {member.relative_to(path).as_posix()}\n" for member in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _create(temporary: Path, is_folder: bool) -> int:
    """The new file or folder, by a descriptor that holds a lock on it: whose is unlocked, its process is dead.

    A file system without such locks (NFS, for who only reads) keeps what killed processes left.
    """
    while True:
        if is_folder:
            temporary.mkdir(0o700)
        descriptor = os.open(
            temporary, os.O_RDONLY if is_folder else os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600
        )
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if temporary.exists():  # else another process found it before it was locked, and has removed it
            return descriptor
        os.close(descriptor)


def _remove_left_behind(path: Path) -> None:
    pattern = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}" + re.escape(SUFFIX))
    for sibling in path.parent.iterdir():
        if not pattern.fullmatch(sibling.name):
            continue
        with suppress(OSError):  # another process uses it, or has just removed it
            descriptor = os.open(sibling, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(sibling)
            finally:
                os.close(descriptor)


def _remove(temporary: Path) -> None:
    """What cannot be removed, such as from a disk that has gone, is not what matters then."""
    if temporary.is_dir():
        shutil.rmtree(temporary, ignore_errors=True)
    else:
        with suppress(OSError):
            temporary.unlink()


def _exchange(new: Path, path: Path, old: Path) -> None:
    """Two renames, so that nothing but a moment stands between the old folder and the new; both or none."""
    try:
        path.replace(old)
        new.replace(path)
    except BaseException:
        if not path.exists():
            old.replace(path)
        raise


def _about_output(error: Exception, temporary: Path, path: Path) -> OSError | None:
    """The error as an OSError that names the output, where it is about that.

    A write to a full disk names no file (Python, pyarrow), and libraries in Rust (safetensors) have no OSError: the
    number is in their text.
    """
    if isinstance(error, OSError):
        number, name = error.errno, str(error.filename2 or error.filename or "")
    else:
        match = re.search(r"\(os error (\d+)\)", str(error))
        number, name = int(match[1]) if match else None, ""
    if number is None or not (
        name.startswith(str(temporary)) or (not name and _is_of_writing(error, number))
    ):
        return None
    return OSError(number, os.strerror(number), str(path) + name.removeprefix(str(temporary)))


def _is_of_writing(error: Exception, number: int) -> bool:
    return number in FULL or not isinstance(error, OSError)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
