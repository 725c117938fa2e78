"""A queue before a server that may be away: one thread performs operations in order, and forgets none.

Each is kept in a file (`unsent`) before it is tried and until it is performed, so that neither a server that is away
nor a crash loses it. What was begun when a process died is performed again: operations must bear that. The caller
waits for the disk alone and never sees an error. A failure is said once; for PAUSE_SECONDS after it nothing is
tried, so a dead server costs little.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from passerelle.unsent import Operation, drop_repeated, keep, kept_files, only_sender, read_kept

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 60.0

Record = tuple[Operation, Path | None]
"""An operation and the file that keeps it."""


class RefusedError(Exception):
    """The server answered, and will not do this at any time."""


class Sender:
    """Performs operations by `perform`, which may raise anything.

    ConnectionError says that nothing else will do either, RefusedError that this operation never will.
    """

    num_sent = 0
    num_left_out = 0

    def __init__(
        self,
        perform: Callable[[Operation], None],
        unsent: Path,
        describe: Callable[[Exception], str],
        say: Callable[[str], None] = logger.warning,
    ) -> None:
        """unsent: folder of what is kept, sent before all else; describe: an error as one line."""
        self._perform = perform
        self._unsent = unsent
        self._describe = describe
        self._tell = say
        self._said: set[str] = set()
        self._pending: deque[Record] = deque()
        self._seen: set[Path] = set()
        self._changed = threading.Condition()
        self._paused_until = 0.0
        self._is_closing = False
        drop_repeated(unsent)
        self._take_over_kept()
        self._thread = threading.Thread(target=self._work, name="sender", daemon=True)
        self._thread.start()

    def send(self, operation: Operation, *, is_kept: bool = True) -> None:
        """Take the operation over. One that is not kept makes sense in this process alone."""
        path = self._keep(operation) if is_kept else None
        with self._changed:
            self._pending.append((operation, path))
            self._changed.notify_all()

    def drain(self, seconds: float) -> None:
        """Wait until all is performed or has failed, but no longer than this."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pending or self._is_paused(), seconds)

    def close(self, seconds: float | None = None) -> None:
        """Try once more what has failed, then end; waits for that, at most so many seconds."""
        with self._changed:
            self._is_closing = True
            self._paused_until = 0.0
            self._changed.notify_all()
        self._thread.join(seconds)
        if self._thread.is_alive():
            self._say_kept(TimeoutError(f"not all could be sent in {seconds:.0f} s"))

    def _keep(self, operation: Operation) -> Path | None:
        try:
            path = keep(self._unsent, operation)
        except OSError as error:
            self._say(
                f"{self._unsent}: cannot be written ({error.strerror}), so what MLflow misses may be lost"
            )
            return None
        self._seen.add(path)
        return path

    def _take_over_kept(self) -> None:
        """What other processes have kept and not sent."""
        for path in kept_files(self._unsent):
            if path not in self._seen and (operation := read_kept(path)) is not None:
                self._seen.add(path)
                self._pending.append((operation, path))

    def _is_paused(self) -> bool:
        return time.monotonic() < self._paused_until

    def _work(self) -> None:
        while self._await_turn():
            self._try_all()

    def _await_turn(self) -> bool:
        """Wait until there is something to try; False where all is over."""
        with self._changed:
            while True:
                if self._is_closing and not self._is_paused():
                    self._take_over_kept()
                if self._pending and not self._is_paused():
                    return True
                if self._is_closing:
                    return False
                self._changed.wait(self._paused_until - time.monotonic() if self._pending else None)

    def _try_all(self) -> None:
        """Try what is pending, in its order. Of a kind that fails nothing more is tried: each kind keeps its order."""
        failed: set[str] = set()
        is_away = False
        while (record := self._next(failed, is_away)) is not None:
            try:
                self._try(record)
            except ConnectionError as error:
                is_away = True
                self._say_kept(error)
            except Exception as error:  # of any library below: no record is worth the work that it records
                failed.add(record[0].get("what", ""))
                self._say_kept(error)
            else:
                with self._changed:
                    self._pending.remove(record)

    def _next(self, failed: set[str], is_away: bool) -> Record | None:
        with self._changed:
            for record in self._pending:
                if not is_away and record[0].get("what", "") not in failed:
                    return record
            if self._pending:
                self._paused_until = time.monotonic() + PAUSE_SECONDS
            self._changed.notify_all()
            return None

    def _try(self, record: Record) -> None:
        operation, path = record
        with only_sender(self._unsent):
            if path is not None and not path.exists():
                return  # another process has sent it
            try:
                self._perform(operation)
                self.num_sent += 1
            except RefusedError as error:
                self.num_left_out += 1
                self._say(f"{self._describe(error)}; left out")
            if path is not None:
                path.unlink()

    def _say_kept(self, error: Exception) -> None:
        self._say(f"{self._describe(error)}; what it misses is kept in {self._unsent} and sent later")

    def _say(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self._tell(message)
