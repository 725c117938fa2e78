"""Stopping on a signal: the workers first finish their step and write a last checkpoint, where that is soon done.

The driver writes the file `stop` into the run folder, and every worker looks for it at each step.
"""

import math
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from passerelle.training.attendance import has_begun

STOP = "stop"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_SECONDS = 0.2


class Stopping:
    """A context in which signals stop training. Before the workers are at work they raise SystemExit at once."""

    def __init__(self, run_folder: Path, grace_seconds: float) -> None:
        """grace_seconds: how long a last checkpoint is waited for."""
        self._run_folder = run_folder
        self._grace_seconds = grace_seconds
        self._first: int | None = None
        self._deadline = math.inf
        self._is_ending = False
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._stop.unlink(missing_ok=True)  # of an earlier interruption
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup has a closed terminal ignored
                self._handlers[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._stop.unlink(missing_ok=True)

    @property
    def is_asked(self) -> bool:
        """Whether a signal has come."""
        return self._first is not None

    @property
    def status(self) -> int:
        """Of the process that stops: 128 + the number of the first signal, as shells have it."""
        return 128 + (self._first or signal.SIGTERM)

    def wait_for(self, thread: threading.Thread, say: Callable[[str], None]) -> None:
        """Wait until the thread ends; SystemExit where after a signal it does not within the grace time."""
        is_said = False
        while thread.is_alive():
            thread.join(LOOK_SECONDS)
            if self.is_asked and not is_said:
                is_said = True
                self._ask()
                now = "Ctrl-C again stops now" if self._first == signal.SIGINT else "Ctrl-C stops now"
                say(f"stopping after this step; {now}")
            if time.monotonic() > self._deadline:
                self._end()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        is_first, self._first = self._first is None, self._first or number
        if self._is_ending:
            return
        if not has_begun(self._run_folder) or (number == signal.SIGINT and not is_first):
            self._end()
        if is_first:
            self._deadline = time.monotonic() + self._grace_seconds

    def _ask(self) -> None:
        try:
            self._stop.touch()
        except OSError:  # nobody would see it, and no checkpoint could be written either
            self._end()

    def _end(self) -> NoReturn:
        self._is_ending = True
        raise SystemExit(self.status)

    @property
    def _stop(self) -> Path:
        return self._run_folder / STOP


def is_stop_asked(run_folder: Path) -> bool:
    """Whether training is to stop after this step."""
    return (run_folder / STOP).exists()
