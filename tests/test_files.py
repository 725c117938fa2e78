"""An output is written whole or not at all; what stood there before survives an interruption."""

import errno
import hashlib
import json
import math
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from passerelle import files as module
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


def test_an_interruption_at_any_line_leaves_the_old_folder_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "model"
    left = set()
    for number in range(1, 1000):
        with whole_folder(path) as temporary:
            (temporary / "weights.bin").write_bytes(b"old")
        assert list(tmp_path.iterdir()) == [path]  # what an interruption has left is gone
        countdown = iter([False] * number)

        def trace(
            frame: FrameType, event: str, _: object, countdown: Iterator[bool] = countdown
        ) -> Callable[..., Any] | None:
            if frame.f_code.co_filename != module.__file__:
                return None
            if event == "line" and next(countdown, True):
                sys.settrace(None)
                raise Interruption
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with whole_folder(path) as temporary:
                (temporary / "weights.bin").write_bytes(b"new")
        except Interruption:
            assert (path / "weights.bin").read_bytes() in (b"old", b"new"), number
            left.add((path / "weights.bin").read_bytes())
        else:
            break
        finally:
            sys.settrace(before)
    assert left == {b"old", b"new"}
    assert 30 < number < 999


LEFT = (".counts.txt.0123456789abcdef.partial", ".counts.txt.00000000000000ff.partial")
OTHERS = (
    ".counts.txt.swp",
    ".counts.txt.settings.partial",
    ".other.txt.0123456789abcdef.partial",
    "counts.txt.0123456789abcdef.partial",
)


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / LEFT[0]).mkdir()
    (tmp_path / LEFT[0] / "part").write_text("half")
    for name in (*LEFT[1:], *OTHERS):
        (tmp_path / name).write_text("half")
    with whole_file(tmp_path / "counts.txt") as temporary:
        temporary.write_text("new")
    assert {path.name for path in tmp_path.iterdir()} == {"counts.txt", *OTHERS}


WRITER = """
import sys
from pathlib import Path
from passerelle.files import whole_file, whole_folder
path = Path("output")
with whole_folder(path) if sys.argv[1] == "folder" else whole_file(path) as temporary:
    print(temporary.name, flush=True)
    input()
    (temporary / "part" if sys.argv[1] == "folder" else temporary).write_text("of the other process")
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_living_process_writes_is_left_to_it(tmp_path: Path, kind: str) -> None:
    command = [sys.executable, "-c", WRITER, kind]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": tmp_path}
    with subprocess.Popen(command, **pipes) as living, subprocess.Popen(command, **pipes) as killed:
        assert living.stdout is not None
        assert killed.stdout is not None
        name, of_killed = living.stdout.readline().strip(), killed.stdout.readline().strip()
        killed.kill()
        killed.wait()
        assert {path.name for path in tmp_path.iterdir()} == {name, of_killed}
        with whole_folder(tmp_path / "output") if kind == "folder" else whole_file(tmp_path / "output"):
            pass
        assert {path.name for path in tmp_path.iterdir()} == {name, "output"}
        living.communicate("\n")
    assert living.returncode == 0
    content = tmp_path / "output" / "part" if kind == "folder" else tmp_path / "output"
    assert content.read_text() == "of the other process"


@contextmanager
def small_disk() -> Iterator[None]:
    """A limit on the size of files, for what a full disk does to whoever writes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


NUMBERS = np.random.default_rng(0).integers(0, 1 << 60, 1 << 16)
WRITERS: dict[str, Callable[[Path], object]] = {
    "python": lambda path: path.write_bytes(bytes(1 << 20)),
    "pyarrow": lambda path: pq.write_table(pa.table({"x": NUMBERS}), path),
    "safetensors": lambda path: save_file({"x": NUMBERS}, path),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_that_cannot_be_written_is_named_whoever_writes_it(tmp_path: Path, writer: str) -> None:
    with (
        pytest.raises(OSError, match=r"File too large: '.*/model'") as found,
        small_disk(),
        whole_file(tmp_path / "model") as temporary,
    ):
        WRITERS[writer](temporary)
    assert (found.value.errno, found.value.filename) == (errno.EFBIG, str(tmp_path / "model"))
    with (
        pytest.raises(OSError, match=r"File too large: '.*/model'"),
        small_disk(),
        whole_folder(tmp_path / "model") as temporary,
    ):
        WRITERS[writer](temporary / "weights")
    assert list(tmp_path.iterdir()) == []


def test_a_fault_below_an_output_names_where_it_would_have_stood(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as found, whole_folder(tmp_path / "model") as temporary:
        (temporary / "absent" / "weights").write_bytes(b"")
    assert found.value.filename == str(tmp_path / "model" / "absent" / "weights")


def test_a_fault_that_is_not_about_the_output_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as found, whole_folder(tmp_path / "model"):
        Path("absent.txt").read_bytes()
    assert found.value.filename == "absent.txt"
    with pytest.raises(ChildProcessError, match="has ended by itself"), whole_folder(tmp_path / "model"):
        raise ChildProcessError("a process has ended by itself")


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
