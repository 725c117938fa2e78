"""What a failed worker means: start again, or stop, and what to tell the user.

Ray wraps the exception of a worker in its own, known here by their names and attributes alone.
"""

from collections.abc import Mapping
from pathlib import Path

from passerelle.training.attendance import forget, late_workers, named, read_mark
from passerelle.training.checkpoint import checkpoint_folders, checkpoint_step
from passerelle.training.terminal import write_event

WRAPPERS = ("controller_failure", "_base_exc", "cause")
MOST_RESTARTS = 3
"""After one another, without a new checkpoint between."""


class TrainingError(RuntimeError):
    """A worker failed in a way that is no fault of the user's input; the message holds its traceback."""


class Restarts:
    """Decides at each failure whether workers are started again, and says so."""

    def __init__(self, run_folder: Path) -> None:
        self._run_folder = run_folder
        self._number = 0
        self._step = -1

    def after(self, errors: Mapping[int, Exception]) -> None:
        """errors: by rank. Raises where starting again would not help, or has not helped MOST_RESTARTS times."""
        for error in errors.values():
            if not may_pass(error):
                raise error
        step = max(map(checkpoint_step, checkpoint_folders(self._run_folder)), default=0)
        self._number = self._number + 1 if step <= self._step else 1
        self._step = step
        what = _what_happened(self._run_folder, errors)
        forget(self._run_folder)
        if self._number > MOST_RESTARTS:
            raise self._last(what, errors)
        write_event(
            self._run_folder,
            f"{what}; starting again from the last checkpoint ({self._number} of {MOST_RESTARTS} times)",
        )

    def _last(self, what: str, errors: Mapping[int, Exception]) -> Exception:
        text = (
            f"{what}; training was started again {MOST_RESTARTS} times and has come to no new checkpoint. Run "
            f"`dvc repro` again to go on from step {self._step}, once the cause is mended"
        )
        if _lost(errors):
            return ChildProcessError(text)
        return TrainingError(f"{text}\n{next(iter(errors.values()))}")


def _what_happened(run_folder: Path, errors: Mapping[int, Exception]) -> str:
    """One line: who did not come, else who died, else what was raised."""
    if late := late_workers(run_folder):
        return late
    marks = {rank: read_mark(run_folder, rank) for rank in errors}
    lost = _lost(errors)
    names = ", ".join(named(rank, marks[rank]) for rank in sorted(lost or errors))
    step = max((mark.step for mark in marks.values() if mark), default=0)
    if any("Timeout" in type(errors[rank]).__name__ for rank in lost):
        return f"{names} no longer answers, since step {step}"
    if lost:
        return f"{names} died at step {step}"
    first = str(cause_of(next(iter(errors.values())))).strip().partition("\n")[0]
    return f"{names} failed at step {step} ({first})"


def _lost(errors: Mapping[int, Exception]) -> list[int]:
    """The workers that are gone, as Ray says; what others raise then, they raise since a connection broke."""
    return sorted(rank for rank, error in errors.items() if _is_of_ray(cause_of(error)))


def cause_of(error: Exception) -> Exception:
    """The exception inside Ray's wrappers."""
    for name in WRAPPERS:
        inner = getattr(error, name, None)
        if isinstance(inner, Exception):
            return cause_of(inner)
    return error


def may_pass(error: Exception) -> bool:
    """Whether it may go well when started again: a process, a machine or a connection was lost."""
    cause = cause_of(error)
    is_lost = _is_of_ray(cause) or isinstance(cause, RuntimeError | ConnectionError)
    return is_lost and not _is_out_of_memory(cause)


def fault(error: Exception) -> Exception:
    """What to raise for a failure that ended training: ValueError or OSError where the user can mend it."""
    failures = list(getattr(error, "worker_failures", {}).values()) or [error]
    failure = next((one for one in failures if not may_pass(one)), failures[0])
    cause = cause_of(failure)
    if _is_out_of_memory(cause):
        return ValueError(f"{str(cause).splitlines()[0]} Lower training.micro_batch_tokens in params.yaml.")
    if isinstance(cause, FloatingPointError):
        return ValueError(str(cause))
    is_told = isinstance(cause, ValueError | OSError | TrainingError)
    return cause if is_told else TrainingError(str(failure))


def _is_of_ray(cause: Exception) -> bool:
    return type(cause).__module__.split(".")[0] == "ray"


def _is_out_of_memory(cause: Exception) -> bool:
    return type(cause).__name__ == "OutOfMemoryError"
