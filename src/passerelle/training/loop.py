"""The training loop: steps, validations, checkpoints, early stopping. Plain torch; knows neither Ray nor MLflow.

Whoever calls it hands in `group` (the workers), `report` (takes metrics and a checkpoint) and `progress`.
Every worker takes the same decisions, because they come from reduced numbers alone.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from passerelle.config import TrainingConfig
from passerelle.data.pairs import SentencePairs
from passerelle.training.batches import planned_steps, step_batches, validation_batches
from passerelle.training.checkpoint import read_checkpoint, write_checkpoint
from passerelle.training.group import Group
from passerelle.training.master import (
    Master,
    copy_to_model,
    make_master,
    optimizer_tensors,
    restore_optimizer,
)
from passerelle.training.precision import compute_dtype
from passerelle.training.schedule import learning_rate
from passerelle.training.step import StepResult, train_step, validation_loss

HISTORY_EVERY = 10
"""Steps averaged into one row of the history."""


@dataclass(frozen=True)
class Report:
    """What all workers report after a validation."""

    step: int
    metrics: dict[str, float]
    """valid_loss, valid_perplexity, best_valid_loss, tokens_per_second, seconds (of training steps so far), and
    valid_bleu where it is measured."""
    history: list[dict[str, float]]
    """Rows since the last report: step, loss, learning_rate, gradient_norm, tokens_per_second; the last row has
    valid_loss too, and valid_bleu where it is measured."""
    write: Callable[[Path], None]
    """Writes the whole state of training as a checkpoint into an empty folder."""


@dataclass(frozen=True)
class Progress:
    """Where training stands, for a live line."""

    step: int
    max_steps: int
    loss: float
    tokens_per_second: float
    seconds_left: float


@dataclass
class _State:
    """What changes while training and must survive a restart, beside weights and moments."""

    step: int = 0
    """Steps done."""
    best_valid_loss: float | None = None
    validations_without_gain: int = 0
    seconds: float = 0.0
    """Spent in training steps."""
    num_tokens: int = 0
    """Target tokens trained on."""
    history: list[dict[str, float]] = field(default_factory=list)


def train(
    model: nn.Module,
    train_pairs: SentencePairs,
    valid_pairs: SentencePairs,
    config: TrainingConfig,
    *,
    device: torch.device,
    group: Group,
    report: Callable[[Report], None],
    progress: Callable[[Progress], None],
    validation_bleu: Callable[[Mapping[str, Tensor]], float] | None = None,
    resume_from: Path | None = None,
) -> None:
    """Train `model` (freshly initialised, the same on every worker) to max_steps or until patience ends.

    `report` and validation_bleu, which takes the parameters by name, are called on every worker after the same
    steps. With resume_from, a checkpoint folder, training
    continues behind its step; a finished one returns at once.
    """
    model.to(device)
    master = make_master(model, config)
    state = _State() if resume_from is None else _restore(resume_from, master)
    model.to(compute_dtype(config.precision, device))
    copy_to_model(master, model)
    steps = planned_steps(train_pairs, config, first_step=state.step)
    results: list[StepResult] = []
    num_reported, began = len(state.history), time.perf_counter()
    while not is_finished(state.step, state.validations_without_gain, config):
        rate = learning_rate(state.step, config)
        batches = step_batches(train_pairs, next(steps), device, group)
        results.append(
            train_step(model, master, batches, step=state.step, rate=rate, config=config, group=group)
        )
        state.step += 1
        is_due = state.step % config.validate_every == 0 or state.step == config.max_steps
        if is_due or state.step % HISTORY_EVERY == 0:
            _add_to_history(state, results, rate, time.perf_counter() - began)
            progress(_progress(state, config))
            results, began = [], time.perf_counter()
        if is_due:
            batches_of_rank = validation_batches(valid_pairs, config, device, group)
            _judge(state, validation_loss(model, batches_of_rank, group, device))
            if validation_bleu is not None:
                state.history[-1]["valid_bleu"] = validation_bleu(master.parameters)
            report(_report(state, master, num_reported))
            num_reported, began = len(state.history), time.perf_counter()


def is_finished(step: int, validations_without_gain: int, config: TrainingConfig) -> bool:
    """Whether training ends after so many steps, the last validations having brought no gain."""
    is_out_of_patience = config.patience is not None and validations_without_gain >= config.patience
    return step >= config.max_steps or is_out_of_patience


def _add_to_history(state: _State, results: list[StepResult], rate: float, seconds: float) -> None:
    """One row for the steps since the last row: means weighted by tokens."""
    num_tokens = sum(result.num_tokens for result in results)
    state.seconds += seconds
    state.num_tokens += num_tokens
    state.history.append(
        {
            "step": state.step,
            "loss": sum(result.negative_log_likelihood * result.num_tokens for result in results)
            / num_tokens,
            "learning_rate": rate,
            "gradient_norm": sum(result.gradient_norm for result in results) / len(results),
            "tokens_per_second": num_tokens / seconds,
        }
    )


def _judge(state: _State, valid_loss: float) -> None:
    """Note a validation in the history, and whether it was the best."""
    if not math.isfinite(valid_loss):
        raise FloatingPointError(
            f"step {state.step}: validation loss is {valid_loss}; lower training.learning_rate"
        )
    state.history[-1]["valid_loss"] = valid_loss
    if state.best_valid_loss is None or valid_loss < state.best_valid_loss:
        state.best_valid_loss, state.validations_without_gain = valid_loss, 0
    else:
        state.validations_without_gain += 1


def _progress(state: _State, config: TrainingConfig) -> Progress:
    row = state.history[-1]
    return Progress(
        step=state.step,
        max_steps=config.max_steps,
        loss=row["loss"],
        tokens_per_second=row["tokens_per_second"],
        seconds_left=(config.max_steps - state.step) * state.seconds / state.step,
    )


def _report(state: _State, master: Master, num_reported: int) -> Report:
    row = state.history[-1]
    valid_loss = row["valid_loss"]
    assert state.best_valid_loss is not None
    return Report(
        step=state.step,
        metrics={
            "valid_loss": valid_loss,
            "valid_perplexity": math.exp(min(valid_loss, 100.0)),
            "best_valid_loss": state.best_valid_loss,
            "tokens_per_second": state.num_tokens / state.seconds,
            "seconds": state.seconds,
            **({"valid_bleu": row["valid_bleu"]} if "valid_bleu" in row else {}),
        },
        history=state.history[num_reported:],
        write=partial(_write, state=state, master=master),
    )


def _write(folder: Path, *, state: _State, master: Master) -> None:
    tensors = {f"model.{name}": parameter.detach() for name, parameter in master.parameters.items()}
    tensors |= {f"optimizer.{name}": moment for name, moment in optimizer_tensors(master).items()}
    write_checkpoint(folder, tensors, asdict(state))


def _restore(folder: Path, master: Master) -> _State:
    tensors, facts = read_checkpoint(folder)
    with torch.no_grad():
        for name, parameter in master.parameters.items():
            parameter.copy_(tensors[f"model.{name}"])
    moments = {
        name.removeprefix("optimizer."): moment
        for name, moment in tensors.items()
        if name.startswith("optimizer.")
    }
    restore_optimizer(master, moments)
    return _State(**facts)
