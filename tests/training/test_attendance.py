"""Who came to an exchange, and who is named when it takes too long."""

import socket
from pathlib import Path
from threading import Event

import pytest

from passerelle.training.attendance import (
    Attendance,
    Mark,
    forget,
    has_begun,
    late_workers,
    named,
    read_mark,
)

HOST = socket.gethostname()
LONG = 3600.0


def attendance(folder: Path, rank: int, num_workers: int = 3) -> Attendance:
    return Attendance(folder, rank, num_workers, LONG)


def waiting(folder: Path, rank: int, num_workers: int = 3) -> tuple[Attendance, Event]:
    """A worker that waits no longer than an instant, and whether it gave up."""
    gave_up = Event()
    return Attendance(folder, rank, num_workers, 0.004, gave_up.set), gave_up


def test_a_worker_leaves_a_sign_from_its_start_on(tmp_path: Path) -> None:
    assert not has_begun(tmp_path)
    worker = attendance(tmp_path, 0)
    assert has_begun(tmp_path)
    assert read_mark(tmp_path, 1) is None
    worker.step = 7
    worker.come()
    worker.come()
    mark = read_mark(tmp_path, 0)
    assert mark is not None
    assert (mark.count, mark.step, mark.host) == (2, 7, HOST)


def test_whoever_has_not_come_is_named_by_one_who_waits_and_then_gives_up(tmp_path: Path) -> None:
    attendance(tmp_path, 2).come()
    attendance(tmp_path, 1)
    worker, gave_up = waiting(tmp_path, 0)
    worker.step = 12
    worker.come()
    with worker:
        assert gave_up.wait(60)
    late = late_workers(tmp_path)
    assert late is not None
    assert late.startswith("worker 1 (process ")
    assert late.endswith(f"on {HOST}) did not come within 0.004 s to where others waited, at step 12")


def test_a_worker_that_never_began_is_late_too(tmp_path: Path) -> None:
    worker, gave_up = waiting(tmp_path, 1, num_workers=2)
    worker.come()
    with worker:
        assert gave_up.wait(60)
    assert (late_workers(tmp_path) or "").startswith("worker 0 did not come within")


@pytest.mark.parametrize("ahead", [0, 1])
def test_who_works_for_long_is_not_waiting(tmp_path: Path, ahead: int) -> None:
    """Its count is no higher than that of any other: it has left the last exchange, or has not come to the next."""
    for rank in (1, 2):
        other = attendance(tmp_path, rank)
        for _ in range(1 + ahead):
            other.come()
    worker, gave_up = waiting(tmp_path, 0)
    worker.come()
    with worker:
        assert not gave_up.wait(0.1)
    assert late_workers(tmp_path) is None


def test_what_an_earlier_start_left_is_forgotten(tmp_path: Path) -> None:
    worker, gave_up = waiting(tmp_path, 0)
    worker.come()
    with worker:
        assert gave_up.wait(60)
    forget(tmp_path)
    assert late_workers(tmp_path) is None
    assert not has_begun(tmp_path)
    forget(tmp_path)


def test_a_torn_sign_is_none(tmp_path: Path) -> None:
    attendance(tmp_path, 0)
    (tmp_path / "workers" / "0").write_text("0000")
    assert read_mark(tmp_path, 0) is None


def test_a_worker_is_named_with_its_process() -> None:
    assert named(3, Mark(5, 7, "node-b", 4321)) == "worker 3 (process 4321 on node-b)"
    assert named(3, None) == "worker 3"
