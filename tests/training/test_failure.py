"""What a worker's exception means to the user."""

import pytest

from passerelle.training.failure import TrainingError, cause_of, fault, may_pass


class WorkerError(Exception):
    """As Ray wraps what the training function raises."""

    def __init__(self, inner: Exception) -> None:
        super().__init__(f"Traceback (most recent call last):\n{inner!r}")
        self._base_exc = inner


class FailuresError(Exception):
    """As Ray's fit() raises what workers raised."""

    def __init__(self, failures: dict[int, Exception]) -> None:
        super().__init__("Training failed due to worker errors")
        self.worker_failures = failures


class StoppedError(Exception):
    """As Ray's fit() raises what its controller raised."""

    def __init__(self, inner: Exception) -> None:
        super().__init__("Training failed due to controller error")
        self.controller_failure = inner


class OutOfMemoryError(RuntimeError):
    """Named as torch names it."""


def actor_died() -> Exception:
    kind = type("ActorDiedError", (Exception,), {"__module__": "ray.exceptions"})
    return kind("the worker died")


def test_the_cause_is_found_inside_all_wrappers() -> None:
    inner = ValueError("x")
    assert cause_of(StoppedError(StoppedError(WorkerError(inner)))) is inner


@pytest.mark.parametrize("error", [actor_died(), RuntimeError("Connection reset by peer"), ConnectionError()])
def test_a_lost_process_or_connection_may_pass(error: Exception) -> None:
    assert may_pass(WorkerError(error))


@pytest.mark.parametrize(
    "error", [ValueError(), TypeError(), OSError(28, "No space left"), OutOfMemoryError()]
)
def test_what_would_happen_again_does_not_pass(error: Exception) -> None:
    assert not may_pass(WorkerError(error))


@pytest.mark.parametrize("error", [ValueError("bad shard"), OSError("No space left")])
def test_a_fault_of_the_users_is_raised_as_it_is(error: Exception) -> None:
    assert fault(StoppedError(WorkerError(error))) is error


def test_a_number_out_of_range_is_a_fault_of_the_users() -> None:
    raised = fault(
        FailuresError({0: WorkerError(FloatingPointError("loss nan; lower training.learning_rate"))})
    )
    assert isinstance(raised, ValueError)
    assert str(raised) == "loss nan; lower training.learning_rate"


def test_too_little_memory_names_the_knob() -> None:
    raised = fault(FailuresError({0: WorkerError(OutOfMemoryError("CUDA out of memory.\nmore"))}))
    assert isinstance(raised, ValueError)
    assert str(raised) == "CUDA out of memory. Lower training.micro_batch_tokens in params.yaml."


def test_the_first_fault_is_told_not_what_followed_from_it() -> None:
    failures = {0: WorkerError(RuntimeError("Connection reset")), 1: WorkerError(ValueError("bad"))}
    assert str(fault(FailuresError(failures))) == "bad"


def test_any_other_error_keeps_the_workers_traceback() -> None:
    raised = fault(FailuresError({1: WorkerError(KeyError("weights"))}))
    assert isinstance(raised, TrainingError)
    assert "Traceback (most recent call last):\nKeyError('weights')" in str(raised)
