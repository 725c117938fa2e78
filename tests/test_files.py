"""An output is written whole or not at all; what stood there before survives an interruption."""

import hashlib
import json
import math
import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from passerelle.files import CHUNK_BYTES, sha256_of_file, whole_file, whole_folder, write_json


class Interruption(BaseException):
    """Like Ctrl-C: no `except Exception` stops it."""


def stop_while_writing_file(path: Path) -> None:
    with whole_file(path) as temporary:
        temporary.write_text("half of the n")
        raise Interruption


def stop_while_writing_folder(path: Path) -> None:
    with whole_folder(path) as temporary:
        (temporary / "weights.bin").write_bytes(b"ne")
        raise Interruption


def test_a_file_appears_under_its_name_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "counts.txt"
    with whole_file(path) as temporary:
        temporary.write_text("élan", encoding="utf-8")
        assert temporary.parent == path.parent
        assert not path.exists()
    assert path.read_text(encoding="utf-8") == "élan"
    assert list(path.parent.iterdir()) == [path]


def test_an_interrupted_file_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "counts.txt"
    path.write_text("old")
    with pytest.raises(Interruption):
        stop_while_writing_file(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_first_file_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Interruption):
        stop_while_writing_file(tmp_path / "counts.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_its_writer_removed_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "counts.txt"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), whole_file(path) as temporary:
        temporary.unlink()
    assert path.read_text() == "old"


def test_a_folder_replaces_the_old_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.mkdir()
    (path / "stale.bin").write_bytes(b"stale")
    with whole_folder(path) as temporary:
        (temporary / "parts").mkdir()
        (temporary / "parts" / "0.bin").write_bytes(b"\x00")
        assert (path / "stale.bin").exists()
    assert [member.relative_to(path).as_posix() for member in sorted(path.rglob("*"))] == [
        "parts",
        "parts/0.bin",
    ]
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_folder_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.mkdir()
    (path / "weights.bin").write_bytes(b"old")
    with pytest.raises(Interruption):
        stop_while_writing_folder(path)
    assert (path / "weights.bin").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("umask", "file_mode", "folder_mode"), [(0o022, 0o644, 0o755), (0o027, 0o640, 0o750)]
)
def test_permissions_follow_the_umask(tmp_path: Path, umask: int, file_mode: int, folder_mode: int) -> None:
    before = os.umask(umask)
    try:
        with whole_file(tmp_path / "file") as temporary:
            temporary.write_text("x")
        with whole_folder(tmp_path / "folder") as temporary:
            save_file({"x": np.zeros(1)}, temporary / "weights")
        assert os.umask(umask) == umask  # and it is left as it was
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == file_mode
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == folder_mode
    assert stat.S_IMODE((tmp_path / "folder" / "weights").stat().st_mode) == file_mode


def write_file_and_folder(path: Path) -> None:
    with whole_file(path / "a") as temporary:
        temporary.write_text("x")
    with whole_folder(path / "b") as temporary:
        (temporary / "c").write_text("x")


def test_what_takes_its_name_was_on_the_disk_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    def noting(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*arguments: object) -> object:
            events.append(name)
            return call(*arguments)

        return wrapper

    monkeypatch.setattr(os, "fsync", noting("sync", os.fsync))
    monkeypatch.setattr(Path, "replace", noting("rename", Path.replace))
    write_file_and_folder(tmp_path)
    assert events == ["sync", "rename", "sync"] * 2


def test_json_is_indented_utf_8_and_always_the_same(tmp_path: Path) -> None:
    path = tmp_path / "metrics" / "corpus.json"
    write_json(path, {"kept": 3, "reason": "ligne vide à côté"})
    first = path.read_bytes()
    write_json(path, {"kept": 3, "reason": "ligne vide à côté"})
    assert path.read_bytes() == first
    assert first.decode("utf-8") == '{\n  "kept": 3,\n  "reason": "ligne vide à côté"\n}\n'


def test_json_refuses_numbers_that_json_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    write_json(path, {"loss": 1.5})
    with pytest.raises(ValueError, match="Out of range float values"):
        write_json(path, {"loss": math.nan})
    assert json.loads(path.read_text()) == {"loss": 1.5}


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 3])
def test_the_hash_is_that_of_the_whole_content(tmp_path: Path, size: int) -> None:
    content = bytes(index % 251 for index in range(size))
    path = tmp_path / "content"
    path.write_bytes(content)
    assert sha256_of_file(path) == hashlib.sha256(content).hexdigest()
