"""What changes while training and must survive a restart, and its form in a checkpoint.

A checkpoint holds the float32 parameters and what the optimisers remember, as tensors, and `State`, as facts.
Nothing else is needed to go on: the order of the data, learning rates and dropout masks follow from the step.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import torch
from pydantic import BaseModel, ConfigDict, NonNegativeFloat, NonNegativeInt, ValidationError, model_validator

from passerelle.config import TrainParams
from passerelle.models import build_model
from passerelle.training.checkpoint import (
    FACTS,
    STATE,
    DamagedCheckpoint,
    checkpoint_step,
    read_checkpoint,
    read_facts,
    tensor_forms,
    verify_checkpoint,
    write_checkpoint,
)
from passerelle.training.master import Master, make_master, master_tensors
from passerelle.training.step import StepResult

FLOAT32 = "F32"
"""As safetensors calls the type of all that training keeps."""

Row = dict[str, int | float]
"""Of the history: step, learning_rate, tokens_per_second; loss and gradient_norm, means over the steps since the row
before, where one of them was not skipped; valid_loss and valid_bleu where they were measured after the step."""


class Facts(BaseModel):
    """Strict, since it is read from files; unlike a section of `params.yaml` it changes."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Sums(Facts):
    """Over the steps since the last row of the history, the skipped ones left out but for seconds."""

    negative_log_likelihood: float
    """Over target tokens."""
    gradient_norm: NonNegativeFloat
    num_steps: NonNegativeInt
    num_tokens: NonNegativeInt
    seconds: NonNegativeFloat


class State(Facts):
    """All of training that is no tensor."""

    step: NonNegativeInt
    """Steps done, skipped ones counted."""
    best_valid_loss: float | None
    validations_without_gain: NonNegativeInt
    skipped_steps: NonNegativeInt
    skipped_in_a_row: NonNegativeInt
    """Up to the last step."""
    seconds: NonNegativeFloat
    """Spent in training steps, up to the last row of the history."""
    num_tokens: NonNegativeInt
    """Target tokens trained on, up to the last row of the history."""
    history: list[Row]
    since_row: Sums

    @model_validator(mode="after")
    def _rows_are_of_steps_done(self) -> Self:
        steps = [row.get("step", math.nan) for row in self.history]
        if any(
            not before < after for before, after in zip([0, *steps], [*steps, self.step + 1], strict=True)
        ):
            raise ValueError("the steps of the history do not rise to the last step")
        return self

    def add(self, result: StepResult, seconds: float) -> None:
        """Count a step."""
        self.step += 1
        self.since_row.seconds += seconds
        if result.is_skipped:
            self.skipped_steps += 1
            self.skipped_in_a_row += 1
            return
        self.skipped_in_a_row = 0
        self.since_row.negative_log_likelihood += result.negative_log_likelihood * result.num_tokens
        self.since_row.gradient_norm += result.gradient_norm
        self.since_row.num_steps += 1
        self.since_row.num_tokens += result.num_tokens

    def end_row(self, rate: float) -> None:
        """One row of the history for the steps since the last."""
        sums, self.since_row = self.since_row, _no_sums()
        self.seconds += sums.seconds
        self.num_tokens += sums.num_tokens
        row: Row = {"step": self.step}
        if sums.num_steps:
            row["loss"] = sums.negative_log_likelihood / sums.num_tokens
            row["gradient_norm"] = sums.gradient_norm / sums.num_steps
        self.history.append(
            row | {"learning_rate": rate, "tokens_per_second": sums.num_tokens / sums.seconds}
        )

    def judge(self, valid_loss: float) -> None:
        """Note a validation in the history's last row, and whether it was the best."""
        if not math.isfinite(valid_loss):
            raise FloatingPointError(
                f"step {self.step}: validation loss is {valid_loss}, so the weights are of no use and no checkpoint "
                "of them is written; lower training.learning_rate or lengthen training.warmup_steps"
            )
        self.history[-1]["valid_loss"] = valid_loss
        if self.best_valid_loss is None or valid_loss < self.best_valid_loss:
            self.best_valid_loss, self.validations_without_gain = valid_loss, 0
        else:
            self.validations_without_gain += 1

    def rows_since_validation(self) -> list[Row]:
        """The last row, that of a validation, and those before it back to the validation before."""
        validated = [number for number, row in enumerate(self.history[:-1]) if "valid_loss" in row]
        return self.history[validated[-1] + 1 if validated else 0 :]


def state_at_start() -> State:
    """Before the first step."""
    return State(
        step=0,
        best_valid_loss=None,
        validations_without_gain=0,
        skipped_steps=0,
        skipped_in_a_row=0,
        seconds=0.0,
        num_tokens=0,
        history=[],
        since_row=_no_sums(),
    )


def write_state(folder: Path, *, state: State, master: Master) -> None:
    """Fill the existing, empty `folder` with a checkpoint."""
    write_checkpoint(folder, master_tensors(master), state.model_dump())


def restore(folder: Path, master: Master) -> State:
    """Give parameters and optimisers what a checkpoint holds. Raises DamagedCheckpoint, with nothing restored."""
    tensors, facts = read_checkpoint(folder)
    own = master_tensors(master)
    _check_tensors(folder, _forms(own))
    state = _state(folder, facts)
    for name, tensor in own.items():
        tensor.copy_(tensors[name])
    return state


def checker(params: TrainParams, vocab_size: int) -> Callable[[Path], None]:
    """A function that raises DamagedCheckpoint where a run with these parameters cannot go on from a checkpoint."""
    with torch.device("meta"):  # shapes alone: no memory, no random numbers
        master = make_master(build_model(params.model, vocab_size), params.training)
    forms = _forms(master_tensors(master))

    def check(folder: Path) -> None:
        verify_checkpoint(folder)
        _check_tensors(folder, forms)
        step = _state(folder, read_facts(folder)).step
        if step != checkpoint_step(folder):
            raise DamagedCheckpoint(f"{folder / FACTS}: of step {step}, but the folder is named otherwise")

    return check


def _no_sums() -> Sums:
    return Sums(negative_log_likelihood=0.0, gradient_norm=0.0, num_steps=0, num_tokens=0, seconds=0.0)


def _state(folder: Path, facts: Mapping[str, Any]) -> State:
    try:
        return State.model_validate(facts)
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(str(part) for part in fault["loc"])
        raise DamagedCheckpoint(
            f"{folder / FACTS}: not the facts of training ({key}: {fault['msg']})"
        ) from None


def _forms(tensors: Mapping[str, torch.Tensor]) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (FLOAT32, tuple(tensor.shape)) for name, tensor in tensors.items()}


def _check_tensors(folder: Path, expected: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
    found = tensor_forms(folder)
    for name in sorted(expected.keys() | found.keys()):
        if found.get(name) != expected.get(name):
            raise DamagedCheckpoint(
                f"{folder / STATE}: tensor {name} is {found.get(name, 'missing')}, but this run's is "
                f"{expected.get(name, 'none')}"
            )
