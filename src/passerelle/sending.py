"""A queue before a server that may be away: one thread performs operations in order, or keeps them in a file.

The caller never waits and never sees an error. A failure is said once; for PAUSE_SECONDS after it nothing is
tried, so a dead server costs little. Kept operations are performed when the server next answers.
"""

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 60.0

Operation = Mapping[str, Any]
"""What to do, as JSON."""


class RefusedError(Exception):
    """The server answered, and will not do this at any time."""


class Sender:
    """Performs operations by `perform`, which raises where the server does not answer (or RefusedError)."""

    def __init__(
        self, perform: Callable[[Operation], None], unsent: Path | None, describe: Callable[[Exception], str]
    ) -> None:
        """unsent: where operations that fail are kept (None drops them); describe: an error as one line."""
        self._perform = perform
        self._unsent = unsent
        self._describe = describe
        self._queue: queue.Queue[Operation | None] = queue.Queue()
        self._said: set[str] = set()
        self._paused_until = 0.0
        self._thread = threading.Thread(target=self._work, name="sender", daemon=True)
        self._thread.start()

    def send(self, operation: Operation) -> None:
        """Take the operation over; returns at once."""
        self._queue.put(operation)

    def drain(self, seconds: float) -> None:
        """Wait until everything taken over is performed or kept, but no longer than this."""
        done = threading.Event()
        self._queue.put({"done": done})
        done.wait(seconds)

    def close(self, seconds: float | None = None) -> None:
        """Try what was kept once more, then end; waits for that, at most so many seconds."""
        self._queue.put(None)
        self._thread.join(seconds)

    def _work(self) -> None:
        self._send_kept()
        while (operation := self._queue.get()) is not None:
            if "done" in operation:
                operation["done"].set()
            else:
                self._try(operation)
        self._paused_until = 0.0
        self._send_kept()

    def _send_kept(self) -> None:
        if self._unsent is None or not self._unsent.is_file():
            return
        lines = self._unsent.read_text(encoding="utf-8").splitlines()
        self._unsent.unlink()
        for line in lines:
            self._try(json.loads(line))

    def _try(self, operation: Operation) -> None:
        if time.monotonic() >= self._paused_until:
            try:
                self._perform(operation)
            except RefusedError as error:
                self._say(f"{self._describe(error)}; left out")
                return
            except Exception as error:  # of any library below: no record is worth the work that it records
                self._paused_until = time.monotonic() + PAUSE_SECONDS
                kept = f"; what it misses is kept in {self._unsent} and sent later" if self._unsent else ""
                self._say(f"{self._describe(error)}{kept}")
            else:
                return
        self._keep(operation)

    def _say(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            logger.warning("%s", message)

    def _keep(self, operation: Operation) -> None:
        if self._unsent is not None:
            with self._unsent.open("a", encoding="utf-8") as file:
                file.write(json.dumps(operation) + "\n")
                file.flush()
                os.fsync(file.fileno())
