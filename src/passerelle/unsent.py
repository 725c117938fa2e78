"""Records that MLflow has not received yet: one file each, beside the run's checkpoints, so that a crash loses none.

A file is written whole before its record is first sent, and removed once that is done. Names give the order.
"""

import fcntl
import json
import logging
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from passerelle.files import whole_file

logger = logging.getLogger(__name__)

Operation = Mapping[str, Any]
"""What to record, as JSON; `what` names its kind."""


def unsent_folder(run_folder: Path) -> Path:
    """Where the records of a run wait."""
    return run_folder / "mlflow-unsent"


def kept_files(folder: Path) -> list[Path]:
    """The files of the records that wait, in their order."""
    return sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))


def keep(folder: Path, operation: Operation) -> Path:
    """Write the record behind those that wait; raises OSError where it cannot be written.

    Another process may do so at once, so the number alone would not do as a name.
    """
    last = max((int(path.name[:8]) for path in kept_files(folder)), default=0)
    path = folder / f"{last + 1:08}-{uuid.uuid4().hex[:8]}.json"
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(operation), encoding="utf-8")
    return path


def read_kept(path: Path) -> Operation | None:
    """The record of a file; None where another process has just sent it, or it is damaged: said, and set aside."""
    try:
        operation = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(operation, dict):
            raise ValueError("no JSON object")
    except FileNotFoundError:
        return None
    except OSError as error:
        logger.warning("%s: cannot be read (%s), so it is not sent now", path, error.strerror)
        return None
    except ValueError as error:
        logger.warning("%s: damaged (%s), so it is left out, and kept as .damaged", path, error)
        with suppress(OSError):
            path.rename(path.with_suffix(".damaged"))
        return None
    return operation


def drop_repeated(folder: Path) -> None:
    """Remove the records that a later one repeats: every start without a server would add to them without end."""
    later: list[Operation] = []
    for path in reversed(kept_files(folder)):
        operation = read_kept(path)
        if operation is None:
            continue
        if any(_is_repeated(operation, other) for other in later):
            path.unlink(missing_ok=True)
        else:
            later.append(operation)


def _is_repeated(operation: Operation, later: Operation) -> bool:
    """The same but for its time, or rows of which the later record has every step: a restart begins with all."""
    if operation.get("what") == later.get("what") == "rows":
        return _steps(operation) <= _steps(later)
    return {**operation, "milliseconds": 0} == {**later, "milliseconds": 0}


def _steps(operation: Operation) -> set[float]:
    return {row["step"] for row in operation["rows"]}


@contextmanager
def only_sender(folder: Path) -> Iterator[None]:
    """Hold what is needed for sending; others, in this process or another, wait.

    Where no lock can be had, on a full disk say, two may send one record: rather twice than never.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
