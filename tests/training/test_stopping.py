"""Signals to the driver: the first asks the workers for a last checkpoint, unless there are none yet."""

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from passerelle.training.attendance import Attendance
from passerelle.training.stopping import Stopping, is_stop_asked

LONG = 3600.0


@pytest.fixture
def at_work(tmp_path: Path) -> Path:
    """The folder of a run whose workers are at work."""
    Attendance(tmp_path, 0, 1, LONG)
    return tmp_path


@contextmanager
def training(work: threading.Event) -> Iterator[threading.Thread]:
    """A thread that stands for training, and ends with the event."""
    thread = threading.Thread(target=work.wait)
    thread.start()
    try:
        yield thread
    finally:
        work.set()
        thread.join()


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def ends_when_told(work: threading.Event, said: list[str]) -> Callable[[str], None]:
    """What the workers do once the user is told that they are asked to."""

    def say(text: str) -> None:
        said.append(text)
        work.set()

    return say


@pytest.mark.parametrize(
    ("number", "status", "text"),
    [
        (signal.SIGINT, 130, "stopping after this step; Ctrl-C again stops now"),
        (signal.SIGTERM, 143, "stopping after this step; Ctrl-C stops now"),
        (signal.SIGHUP, 129, "stopping after this step; Ctrl-C stops now"),
    ],
)
def test_the_first_signal_asks_the_workers_to_stop(
    at_work: Path, number: int, status: int, text: str
) -> None:
    work, said = threading.Event(), list[str]()
    with training(work) as thread, Stopping(at_work, LONG) as stopping:
        assert not stopping.is_asked
        send(number)
        assert stopping.is_asked
        stopping.wait_for(thread, ends_when_told(work, said))
        assert is_stop_asked(at_work)
        assert stopping.status == status
    assert said == [text]
    assert not is_stop_asked(at_work)


def test_the_second_interrupt_stops_at_once(at_work: Path) -> None:
    with training(threading.Event()) as thread, Stopping(at_work, LONG) as stopping:
        send(signal.SIGTERM)
        with pytest.raises(SystemExit) as raised:
            stopping.wait_for(thread, lambda text: send(signal.SIGINT))
        assert raised.value.code == 143  # what was asked for first
        send(signal.SIGINT)  # which does not disturb its end


def test_a_second_termination_is_none_of_its_own(at_work: Path) -> None:
    work, said = threading.Event(), list[str]()
    with training(work) as thread, Stopping(at_work, LONG) as stopping:
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        stopping.wait_for(thread, ends_when_told(work, said))
    assert len(said) == 1


def test_after_the_grace_time_nothing_is_waited_for(at_work: Path) -> None:
    with training(threading.Event()) as thread, Stopping(at_work, 0.01) as stopping:
        send(signal.SIGTERM)
        with pytest.raises(SystemExit, match="143"):
            stopping.wait_for(thread, lambda text: None)


def test_before_the_workers_are_at_work_every_signal_stops_at_once(tmp_path: Path) -> None:
    for number, status in ((signal.SIGINT, "130"), (signal.SIGTERM, "143")):
        with Stopping(tmp_path, LONG), pytest.raises(SystemExit, match=status):
            send(number)


def test_where_the_workers_cannot_be_asked_it_stops_at_once(at_work: Path) -> None:
    with training(threading.Event()) as thread, Stopping(at_work, LONG) as stopping:
        send(signal.SIGTERM)
        shutil.rmtree(at_work)
        with pytest.raises(SystemExit, match="143"):
            stopping.wait_for(thread, lambda text: None)


def test_an_earlier_stop_does_not_stop_a_later_start(at_work: Path) -> None:
    (at_work / "stop").touch()
    with Stopping(at_work, LONG):
        assert not is_stop_asked(at_work)


def test_handlers_are_given_back_and_what_was_ignored_stays_so(at_work: Path) -> None:
    def mine(number: int, frame: FrameType | None) -> None:
        """Nothing."""

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGTERM, mine)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
        with Stopping(at_work, LONG) as stopping:
            send(signal.SIGHUP)
            assert not stopping.is_asked
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
