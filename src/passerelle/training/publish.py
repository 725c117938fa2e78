"""From the checkpoints of a run to its results: averaged weights, measured facts, curves."""

import csv
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from passerelle.config import TrainingConfig, TrainParams
from passerelle.data.pairs import SentencePairs
from passerelle.data.tokenizer import Tokenizer
from passerelle.files import whole_file, write_json
from passerelle.model_folder import save_model
from passerelle.models import build_model
from passerelle.training.batches import validation_batches
from passerelle.training.checkpoint import (
    checkpoint_folders,
    checkpoint_step,
    read_checkpoint,
    read_facts,
    sound_checkpoints,
)
from passerelle.training.group import ALONE
from passerelle.training.loop import is_finished
from passerelle.training.precision import compute_dtype
from passerelle.training.state import Row, checker
from passerelle.training.step import validation_loss

logger = logging.getLogger(__name__)

NUM_NEWEST_KEPT = 2
"""A damaged newest checkpoint must leave one to go back to."""
CURVES = ("loss", "learning_rate", "gradient_norm", "tokens_per_second")
VALIDATED = ("valid_loss", "valid_bleu")

Facts = Mapping[str, Any]
"""What the training loop writes beside the tensors: step, history, counters."""


@dataclass(frozen=True)
class Published:
    """What a finished run measured."""

    metrics: dict[str, float]
    """As in the metrics file."""
    history: list[Row]
    """All rows, from the first step."""


def is_run_finished(facts: Facts, config: TrainingConfig) -> bool:
    """Whether a checkpoint with these facts is the end of its run."""
    return is_finished(facts["step"], facts["validations_without_gain"], config)


def steps_to_average(facts: Facts, config: TrainingConfig) -> list[int]:
    """The steps, up to that of `facts`, whose checkpoints are averaged: the last, or those of lowest loss."""
    losses = {int(row["step"]): row["valid_loss"] for row in facts["history"] if "valid_loss" in row}
    if config.average_of == "best":
        steps = sorted(losses, key=lambda step: (losses[step], -step))[: config.average_checkpoints]
    else:
        steps = sorted(losses)[-config.average_checkpoints :]
    return sorted(steps)


def prune_checkpoints(run_folder: Path, newest: Path, config: TrainingConfig) -> None:
    """Remove the checkpoints that neither the average nor a restart will need; `newest` was just written.

    Checkpoints beyond it are left over from work that is being repeated, and removed as well.
    """
    needed = set(steps_to_average(read_facts(newest), config))
    folders = checkpoint_folders(run_folder)
    reached = [folder for folder in folders if checkpoint_step(folder) <= checkpoint_step(newest)]
    needed.update(checkpoint_step(folder) for folder in reached[-NUM_NEWEST_KEPT:])
    for folder in folders:
        if checkpoint_step(folder) not in needed:
            shutil.rmtree(folder)


def average_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the checkpoints' model weights, by parameter name (summed in float64, then float32)."""
    sums: dict[str, Tensor] = {}
    for folder in folders:
        tensors, _ = read_checkpoint(folder)
        for name, tensor in tensors.items():
            if name.startswith("model."):
                parameter = name.removeprefix("model.")
                sums[parameter] = sums.get(parameter, torch.zeros((), dtype=torch.float64)) + tensor.double()
    return {name: (total / len(folders)).float() for name, total in sums.items()}


def publish(
    run_folder: Path,
    params: TrainParams,
    *,
    tokenizer_model: Path,
    tokenizer: Tokenizer,
    valid_pairs: SentencePairs,
    training_sentences: Mapping[str, NDArray[np.uint64]],
    model_folder: Path,
    metrics_path: Path,
    plots_folder: Path,
) -> Published:
    """Write the model folder, the metrics and the curves of a finished run.

    training_sentences: by language side the hashes that the model carries (`model_folder.save_model`).
    """
    sound = sound_checkpoints(run_folder, checker(params, tokenizer.vocab_size))
    if not sound:
        raise ValueError(
            f"{run_folder}: holds no undamaged checkpoint; run stage train again, it starts anew"
        )
    facts = read_facts(sound[-1])
    if not is_run_finished(facts, params.training):
        raise ValueError(
            f"{sound[-1]}: newest undamaged checkpoint, but not the end; run stage train again, it goes on from there"
        )
    wanted = set(steps_to_average(facts, params.training))
    averaged = [folder for folder in sound if checkpoint_step(folder) in wanted]
    if len(averaged) < len(wanted):
        logger.warning("averaging %d checkpoints, since %d of those planned are gone or damaged",
                       len(averaged), len(wanted) - len(averaged))  # fmt: skip
    weights = average_weights(averaged or sound[-1:])
    save_model(
        model_folder,
        weights,
        tokenizer_model,
        model=params.model,
        languages=params.languages,
        fingerprint=run_folder.name,
        training_sentences=training_sentences,
    )
    metrics = _metrics(facts, weights)
    metrics["averaged_valid_loss"] = _loss_of(weights, params, tokenizer.vocab_size, valid_pairs)
    write_json(metrics_path, metrics)
    history = facts["history"]
    trained = [row for row in history if "loss" in row]  # an empty cell would be drawn as 0
    _write_csv(plots_folder / "training.csv", ("step", *CURVES), trained)
    validations = [row for row in history if "valid_loss" in row]
    measured = [name for name in VALIDATED if name in validations[-1]]
    _write_csv(plots_folder / "validation.csv", ("step", *measured), validations)
    return Published(metrics, history)


def _metrics(facts: Facts, weights: Mapping[str, Tensor]) -> dict[str, float]:
    validations = [row for row in facts["history"] if "valid_loss" in row]
    last = validations[-1]
    return {
        "steps": facts["step"],
        "best_valid_loss": facts["best_valid_loss"],
        "last_valid_loss": last["valid_loss"],
        **({"last_valid_bleu": round(last["valid_bleu"], 4)} if "valid_bleu" in last else {}),
        "parameters": sum(tensor.numel() for tensor in weights.values()),
        "target_tokens": facts["num_tokens"],
        "skipped_steps": facts["skipped_steps"],
        "train_seconds": round(facts["seconds"], 1),
        "tokens_per_second": round(facts["num_tokens"] / facts["seconds"], 1),
    }


def _loss_of(
    weights: Mapping[str, Tensor], params: TrainParams, vocab_size: int, pairs: SentencePairs
) -> float:
    """Validation loss of the averaged weights, measured as the loop measures it."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = build_model(params.model, vocab_size)
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, tensor in weights.items():
            parameters[name].copy_(tensor)
    config = params.training
    model.to(device, compute_dtype(config.precision, device))
    batches = validation_batches(pairs, config, device, ALONE)
    return validation_loss(model, batches, ALONE, device)


def _write_csv(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, float]]) -> None:
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
