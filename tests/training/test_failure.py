"""What a worker's exception means to the user."""

import json
import re
import socket
from pathlib import Path

import pytest

from passerelle.training.attendance import Attendance
from passerelle.training.checkpoint import checkpoint_name
from passerelle.training.failure import MOST_RESTARTS, Restarts, TrainingError, cause_of, fault, may_pass


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


def of_ray(name: str) -> Exception:
    return type(name, (Exception,), {"__module__": "ray.exceptions"})("of Ray")


def actor_died() -> Exception:
    return of_ray("ActorDiedError")


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


def test_an_error_that_says_all_is_raised_as_it_is() -> None:
    for error in (ChildProcessError("worker 1 died"), TrainingError("worker 1 failed")):
        assert fault(StoppedError(error)) is error


def at_work(run_folder: Path, steps: dict[int, int]) -> None:
    """Signs of workers at these steps, by rank."""
    for rank, step in steps.items():
        worker = Attendance(run_folder, rank, len(steps), 3600.0)
        worker.step = step
        worker.come()


def told(run_folder: Path) -> list[str]:
    lines = (run_folder / "events.jsonl").read_text().split("\n")
    return [json.loads(line)["text"] for line in lines if line]


def sign(rank: int) -> str:
    return rf"worker {rank} \(process \d+ on {socket.gethostname()}\)"


def test_who_died_is_told_and_not_who_noticed(tmp_path: Path) -> None:
    at_work(tmp_path, {0: 12, 1: 13})
    Restarts(tmp_path).after({0: WorkerError(RuntimeError("Connection reset by peer")), 1: actor_died()})
    (text,) = told(tmp_path)
    assert re.fullmatch(
        rf"{sign(1)} died at step 13; starting again from the last checkpoint \(1 of 3 times\)", text
    )


def test_who_no_longer_answers_is_told(tmp_path: Path) -> None:
    at_work(tmp_path, {0: 12, 1: 13})
    Restarts(tmp_path).after({1: of_ray("WorkerHealthCheckTimeoutError")})
    assert re.match(rf"{sign(1)} no longer answers, since step 13; starting again", told(tmp_path)[0])


def test_who_did_not_come_is_told_and_not_who_gave_up_for_it(tmp_path: Path) -> None:
    at_work(tmp_path, {0: 12, 1: 11})
    (tmp_path / "late.json").write_text('{"text": "worker 1 did not come"}')
    restarts = Restarts(tmp_path)
    restarts.after({0: actor_died()})
    at_work(tmp_path, {0: 14, 1: 14})
    restarts.after({0: actor_died()})  # another matter
    assert told(tmp_path)[0].startswith("worker 1 did not come; starting again")
    assert re.match(rf"{sign(0)} died at step 14; starting again", told(tmp_path)[1])


def test_an_error_of_the_code_is_told_by_its_first_line(tmp_path: Path) -> None:
    at_work(tmp_path, {0: 12})
    Restarts(tmp_path).after({0: WorkerError(RuntimeError("CUDA error: misaligned\nmore"))})
    assert re.match(
        rf"{sign(0)} failed at step 12 \(CUDA error: misaligned\); starting again", told(tmp_path)[0]
    )


def test_what_would_happen_again_is_not_tried_again(tmp_path: Path) -> None:
    error = WorkerError(ValueError("bad shard"))
    with pytest.raises(WorkerError) as raised:
        Restarts(tmp_path).after({0: actor_died(), 1: error})
    assert raised.value is error
    assert not (tmp_path / "events.jsonl").exists()


def test_after_the_last_restart_it_says_so_and_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / checkpoint_name(40)).mkdir()
    restarts = Restarts(tmp_path)
    for _ in range(MOST_RESTARTS):
        restarts.after({1: actor_died()})
    with pytest.raises(
        ChildProcessError,
        match=r"^worker 1 died at step 0; training was started again 3 times and has come to no new checkpoint. Run "
        r"`dvc repro` again to go on from step 40, once the cause is mended$",
    ):
        restarts.after({1: actor_died()})
    numbers = [text.partition("checkpoint ")[2] for text in told(tmp_path)]
    assert numbers == ["(1 of 3 times)", "(2 of 3 times)", "(3 of 3 times)"]


def test_an_error_of_the_code_ends_with_its_traceback(tmp_path: Path) -> None:
    restarts = Restarts(tmp_path)
    for _ in range(MOST_RESTARTS):
        restarts.after({0: WorkerError(RuntimeError("shapes differ"))})
    with pytest.raises(TrainingError, match=r"no new checkpoint. Run .*\nTraceback .*\n.*shapes differ"):
        restarts.after({0: WorkerError(RuntimeError("shapes differ"))})


def test_restarts_are_counted_anew_after_each_new_checkpoint(tmp_path: Path) -> None:
    restarts = Restarts(tmp_path)
    for step in range(1, 3 * MOST_RESTARTS):
        (tmp_path / checkpoint_name(step)).mkdir()
        restarts.after({1: actor_died()})
    assert all(text.endswith("(1 of 3 times)") for text in told(tmp_path))
