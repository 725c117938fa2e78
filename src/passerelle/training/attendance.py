"""Who came to an exchange between workers, so that a time-out can name the worker that did not.

Before a worker waits for the others it counts so in a file of its own in the run folder, `workers/<rank>`. Each worker
has a thread that looks whether it has waited too long: then it notes in `late.json` who has counted less, and ends its
own process. A wait within the communication library could not be ended otherwise, on GPUs at least. Ray sees the loss,
and starts all workers again; those that hang are killed. One that is halted within an exchange has counted: that one
no longer answers Ray, which names it (`failure`).
"""

import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from passerelle.files import write_json

MARKS, LATE = "workers", "late.json"
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Mark:
    """A worker's last sign of life."""

    count: int
    """Exchanges that it came to."""
    step: int
    """That it was working at, from 1."""
    host: str
    process: int


def end_process() -> None:
    """End this process without asking any other thread."""
    os._exit(1)


class Attendance:
    """One worker's part; a context, since a thread keeps watch in it."""

    def __init__(
        self,
        run_folder: Path,
        rank: int,
        num_workers: int,
        seconds: float,
        end: Callable[[], None] = end_process,
    ) -> None:
        """seconds: the longest wait for others; end: called after it."""
        self.step = 0
        """The step in work, from 1; 0 before the first. Whoever knows it sets it."""
        self._run_folder = run_folder
        self._rank = rank
        self._num_workers = num_workers
        self._seconds = seconds
        self._end = end
        self._count = 0
        self._since = time.monotonic()
        self._place = f"{socket.gethostname()} {os.getpid()}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="attendance", daemon=True)
        (run_folder / MARKS).mkdir(exist_ok=True)
        self._file = os.open(_path(run_folder, rank), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._write()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        os.close(self._file)

    def come(self) -> None:
        """This worker's part is done; now it waits for the others. Takes microseconds."""
        self._since = time.monotonic()
        self._count += 1
        self._write()

    def _write(self) -> None:
        with suppress(OSError):  # a full disk: a later time-out may then name too many, but training goes on
            sign = f"{self._count:012} {self.step:012} {self._place}\n"
            os.pwrite(self._file, sign.encode(), 0)

    def _watch(self) -> None:
        while not self._ended.wait(min(LOOK_SECONDS, self._seconds / 4)):
            count = self._count  # before the time that belongs to it, since `come` notes that first
            if time.monotonic() - self._since > self._seconds and self._note_late(count):
                self._end()

    def _note_late(self, count: int) -> bool:
        """Whether others have not come to this worker's last exchange; they are noted."""
        marks = {rank: read_mark(self._run_folder, rank) for rank in range(self._num_workers)}
        late = [rank for rank, mark in marks.items() if mark is None or mark.count < count]
        if not late or self._rank in late:
            return False
        names = ", ".join(named(rank, marks[rank]) for rank in late)
        text = f"{names} did not come within {self._seconds:g} s to where others waited, at step {self.step}"
        with suppress(OSError):  # a full disk must not keep it from ending
            write_json(self._run_folder / LATE, {"text": text})
        return True


def read_mark(run_folder: Path, rank: int) -> Mark | None:
    """A worker's last sign, None before its first."""
    try:
        count, step, host, process = _path(run_folder, rank).read_text(encoding="utf-8").split()
        return Mark(int(count), int(step), host, int(process))
    except (OSError, ValueError):
        return None


def named(rank: int, mark: Mark | None) -> str:
    """`worker 1 (process 4321 on node-b)`."""
    return f"worker {rank} (process {mark.process} on {mark.host})" if mark else f"worker {rank}"


def has_begun(run_folder: Path) -> bool:
    """Whether a worker is at work, or was since `forget`."""
    return read_mark(run_folder, 0) is not None


def late_workers(run_folder: Path) -> str | None:
    """What a worker noted of those that it waited for in vain, since `forget`."""
    try:
        return str(json.loads((run_folder / LATE).read_bytes())["text"])
    except OSError:
        return None


def forget(run_folder: Path) -> None:
    """Remove the marks and notes of an earlier start."""
    shutil.rmtree(run_folder / MARKS, ignore_errors=True)
    (run_folder / LATE).unlink(missing_ok=True)


def _path(run_folder: Path, rank: int) -> Path:
    return run_folder / MARKS / str(rank)
