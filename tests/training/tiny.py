"""A corpus and a model small enough to train in a second."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from passerelle.config import ModelConfig, TrainingConfig
from passerelle.data.pairs import SentencePairs
from passerelle.data.ragged import Ragged, offsets_of
from passerelle.models import Model, build_model
from passerelle.training.group import ALONE, Group
from passerelle.training.loop import Progress, Report, train

VOCAB_SIZE = 13
Name = Literal["transformer", "bahdanau"]


def tiny_pairs(num_pairs: int, seed: int) -> SentencePairs:
    """Random sentences whose translation is each token plus one, in two shards."""
    generator = np.random.default_rng(seed)
    shards = []
    for rows in (num_pairs // 3, num_pairs - num_pairs // 3):
        offsets = offsets_of(generator.integers(1, 9, rows))
        shards.append(Ragged(generator.integers(4, VOCAB_SIZE - 1, offsets[-1], dtype=np.uint16), offsets))
    targets = tuple(Ragged(shard.ids + np.uint16(1), shard.offsets) for shard in shards)
    return SentencePairs({}, tuple(shards), targets)


def tiny_model(dropout: float = 0.1, name: Name = "transformer") -> Model:
    """The same initial weights each time."""
    torch.manual_seed(0)
    config = ModelConfig(name=name, d_model=12, num_heads=3, num_layers=2, d_ff=20, dropout=dropout)
    return build_model(config, VOCAB_SIZE)


def tiny_config(**changes: Any) -> TrainingConfig:
    """Six short steps, validated after 3 and 6."""
    settings: dict[str, Any] = {
        "precision": "fp32",
        "micro_batch_tokens": 64,
        "micro_batches_per_step": 3,
        "max_steps": 6,
        "optimizer": "adam",
        "warmup_steps": 2,
        "learning_rate": 0.01,
        "validate_every": 3,
    }
    return TrainingConfig(**(settings | changes))


def run(
    config: TrainingConfig,
    folder: Path,
    *,
    group: Group = ALONE,
    resume_from: Path | None = None,
    dropout: float = 0.1,
    name: Name = "transformer",
) -> tuple[list[Report], list[Progress]]:
    """Train the tiny model; worker 0 keeps each checkpoint as folder/step."""
    reports: list[Report] = []
    progress: list[Progress] = []

    def keep(report: Report) -> None:
        reports.append(report)
        if group.rank == 0:
            checkpoint = folder / str(report.step)
            checkpoint.mkdir(parents=True)
            report.write(checkpoint)

    train(
        tiny_model(dropout, name),
        tiny_pairs(200, seed=1),
        tiny_pairs(40, seed=2),
        config,
        device=torch.device("cpu"),
        group=group,
        report=keep,
        progress=progress.append,
        resume_from=resume_from,
    )
    return reports, progress
