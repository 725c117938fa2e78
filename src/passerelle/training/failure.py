"""What a failed worker means: start again, or stop, and what to tell the user.

Ray wraps the exception of a worker in its own, known here by their attributes alone.
"""

WRAPPERS = ("controller_failure", "_base_exc", "cause")


class TrainingError(RuntimeError):
    """A worker failed in a way that is no fault of the user's input; the message holds its traceback."""


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
    is_of_ray = type(cause).__module__.split(".")[0] == "ray"
    return (is_of_ray or isinstance(cause, RuntimeError | ConnectionError)) and not _is_out_of_memory(cause)


def fault(error: Exception) -> Exception:
    """What to raise for a failure that ended training: ValueError or OSError where the user can mend it."""
    failures = list(getattr(error, "worker_failures", {}).values()) or [error]
    failure = next((one for one in failures if not may_pass(one)), failures[0])
    cause = cause_of(failure)
    if _is_out_of_memory(cause):
        return ValueError(f"{str(cause).splitlines()[0]} Lower training.micro_batch_tokens in params.yaml.")
    if isinstance(cause, FloatingPointError):
        return ValueError(str(cause))
    return cause if isinstance(cause, ValueError | OSError) else TrainingError(str(failure))


def _is_out_of_memory(cause: Exception) -> bool:
    return type(cause).__name__ == "OutOfMemoryError"
