"""Files that are written whole or not at all, and their hashes."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHUNK_BYTES = 1 << 20


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`; when the block ends well, its file is synced and takes the name `path`.

    When the block raises, the temporary file is removed and whatever stood at `path` is untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path`; when the block ends well, its files are synced and it replaces `path`.

    When the block raises, the temporary folder is removed and whatever stood at `path` is untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield temporary
        for member in sorted(temporary.rglob("*")):
            member.chmod((0o777 if member.is_dir() else 0o666) & ~_umask())  # some libraries write 0o600
            _sync(member)
        temporary.chmod(0o777 & ~_umask())
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
            path.replace(old)  # renamed aside, so that nothing but a rename stands between old and new
            temporary.replace(path)
            shutil.rmtree(old)
        else:
            temporary.replace(path)
        _sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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
