"""The training loop: steps, validations, checkpoints, early stopping. Plain torch; knows neither Ray nor MLflow.

Whoever calls it hands in `group` (the workers), `report` (takes metrics and a checkpoint), `save` (takes a
checkpoint), `stop` (says whether to stop) and `progress`. Every worker takes the same decisions, because they come
from reduced numbers alone.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from passerelle.config import TrainingConfig
from passerelle.data.pairs import SentencePairs
from passerelle.data.plan import Indices
from passerelle.training.batches import planned_steps, step_batches, validation_batches
from passerelle.training.divergence import Diverged
from passerelle.training.group import Group
from passerelle.training.master import Master, copy_to_model, make_master
from passerelle.training.precision import compute_dtype
from passerelle.training.schedule import learning_rate
from passerelle.training.state import Row, State, restore, state_at_start, write_state
from passerelle.training.step import StepResult, train_step, validation_loss

logger = logging.getLogger(__name__)

HISTORY_EVERY = 10
"""Steps averaged into one row of the history."""

READ_LATE = ("cuda",)
"""Devices that are waited for only where a row of the history ends, so that they never wait for the host."""

Write = Callable[[Path], None]
"""Writes the whole state of training as a checkpoint into an empty folder."""


@dataclass(frozen=True)
class Report:
    """What all workers report after a validation."""

    step: int
    metrics: dict[str, float]
    """valid_loss, valid_perplexity, best_valid_loss, tokens_per_second, seconds (of training steps so far),
    skipped_steps, and valid_bleu where it is measured."""
    history: list[Row]
    """Rows since the last validation; the last row has valid_loss too, and valid_bleu where it is measured."""
    write: Write


@dataclass(frozen=True)
class Progress:
    """Where training stands, for a live line."""

    step: int
    max_steps: int
    loss: float
    """NaN where no step since the last note was good."""
    tokens_per_second: float
    seconds_left: float
    skipped_steps: int = 0


def train(
    model: nn.Module,
    train_pairs: SentencePairs,
    valid_pairs: SentencePairs,
    config: TrainingConfig,
    *,
    device: torch.device,
    group: Group,
    report: Callable[[Report], None],
    save: Callable[[int, Write], None],
    stop: Callable[[], bool],
    progress: Callable[[Progress], None],
    validation_bleu: Callable[[Mapping[str, Tensor]], float] | None = None,
    resume_from: Path | None = None,
) -> None:
    """Train `model` (freshly initialised, the same on every worker) until max_steps, patience's end, or a stop.

    `report` and validation_bleu, which takes the parameters by name, are called on every worker after the same
    steps. `stop` is asked once a step on every worker; where one says True, all return after that step (on a GPU,
    after the next row of the history), and where no validation has just reported it, all call `save` with its number
    first. With resume_from, a checkpoint folder, training goes on behind its step as if it had never stopped; a
    finished one returns at once. Raises Diverged where too many steps in a row had to be skipped, FloatingPointError
    where a validation loss is not finite.
    """
    model.to(device)
    master = make_master(model, config)
    state = state_at_start() if resume_from is None else restore(resume_from, master)
    model.to(compute_dtype(config.precision, device))
    copy_to_model(master, model)
    steps = planned_steps(train_pairs, config, first_step=state.step)
    unread: list[tuple[StepResult, list[Indices]]] = []
    began = 0.0
    while not is_finished(state.step, state.validations_without_gain, config):
        began = began if unread else time.perf_counter()
        micro_batches, rate = next(steps), learning_rate(state.step + len(unread), config)
        result = train_step(
            model,
            master,
            step_batches(train_pairs, micro_batches, device, group),
            step=state.step + len(unread),
            rate=rate,
            config=config,
            group=group,
            wants_stop=stop(),
        )
        unread.append((result, micro_batches))
        step = state.step + len(unread)
        is_due = step % config.validate_every == 0 or step == config.max_steps
        ends_row = is_due or step % HISTORY_EVERY == 0
        if device.type in READ_LATE and not ends_row:
            continue
        is_stop_wanted = _read(unread, state, began, config, group)
        if ends_row:
            state.end_row(rate)
            progress(_progress(state, config))
        if is_due:
            state.judge(
                validation_loss(model, validation_batches(valid_pairs, config, device, group), group, device)
            )
            if validation_bleu is not None:
                state.history[-1]["valid_bleu"] = validation_bleu(master.parameters)
            report(_report(state, master))
        elif is_stop_wanted:
            save(state.step, partial(write_state, state=state, master=master))
        if is_stop_wanted:
            return


def _read(
    unread: list[tuple[StepResult, list[Indices]]],
    state: State,
    began: float,
    config: TrainingConfig,
    group: Group,
) -> bool:
    """Count the steps done since `began`, and forget them; whether one of them is to be the last."""
    stop_wishes = [result.is_stop_wanted for result, _ in unread]  # waits for a GPU
    seconds = (time.perf_counter() - began) / len(unread)
    for result, micro_batches in unread:
        state.add(result, seconds)
        loss, norm = result.loss, result.gradient_norm
        if result.is_skipped and group.rank == 0:
            logger.warning("step %d skipped: loss %s, gradient norm %s", state.step, loss, norm)
        if state.skipped_in_a_row >= config.max_skipped_steps:
            raise Diverged(state.step, state.skipped_in_a_row, loss, norm, micro_batches)
    unread.clear()
    return any(stop_wishes)


def is_finished(step: int, validations_without_gain: int, config: TrainingConfig) -> bool:
    """Whether training ends after so many steps, the last validations having brought no gain."""
    is_out_of_patience = config.patience is not None and validations_without_gain >= config.patience
    return step >= config.max_steps or is_out_of_patience


def _progress(state: State, config: TrainingConfig) -> Progress:
    row = state.history[-1]
    return Progress(
        step=state.step,
        max_steps=config.max_steps,
        loss=row.get("loss", math.nan),
        tokens_per_second=row["tokens_per_second"],
        seconds_left=(config.max_steps - state.step) * state.seconds / state.step,
        skipped_steps=state.skipped_steps,
    )


def _report(state: State, master: Master) -> Report:
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
            "skipped_steps": state.skipped_steps,
            **({"valid_bleu": row["valid_bleu"]} if "valid_bleu" in row else {}),
        },
        history=state.rows_since_validation(),
        write=partial(write_state, state=state, master=master),
    )
