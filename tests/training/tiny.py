"""A corpus and a model small enough to train in a second."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from passerelle.config import TrainingConfig, TransformerConfig
from passerelle.data.pairs import SentencePairs
from passerelle.data.ragged import Ragged, offsets_of
from passerelle.models import build_model
from passerelle.nn.transformer import Transformer
from passerelle.training.loop import Progress, Report, train
from passerelle.training.step import Reduce

VOCAB_SIZE = 13


def tiny_pairs(num_pairs: int, seed: int) -> SentencePairs:
    """Random sentences whose translation is each token plus one, in two shards."""
    generator = np.random.default_rng(seed)
    shards = []
    for rows in (num_pairs // 3, num_pairs - num_pairs // 3):
        offsets = offsets_of(generator.integers(1, 9, rows))
        shards.append(Ragged(generator.integers(4, VOCAB_SIZE - 1, offsets[-1], dtype=np.uint16), offsets))
    targets = tuple(Ragged(shard.ids + np.uint16(1), shard.offsets) for shard in shards)
    return SentencePairs({}, tuple(shards), targets)


def tiny_model(dropout: float = 0.1) -> Transformer:
    """The same initial weights each time."""
    torch.manual_seed(0)
    config = TransformerConfig(d_model=12, num_heads=3, num_layers=2, d_ff=20, dropout=dropout)
    return build_model(config, VOCAB_SIZE)


def tiny_config(**changes: Any) -> TrainingConfig:
    """Six short steps, validated after 3 and 6."""
    settings: dict[str, Any] = {
        "precision": "fp32",
        "micro_batch_tokens": 64,
        "micro_batches_per_step": 3,
        "max_steps": 6,
        "warmup_steps": 2,
        "learning_rate": 0.01,
        "validate_every": 3,
    }
    return TrainingConfig(**(settings | changes))


def run(
    config: TrainingConfig,
    folder: Path,
    *,
    rank: int = 0,
    num_workers: int = 1,
    reduce: Reduce = lambda tensor: None,
    resume_from: Path | None = None,
    dropout: float = 0.1,
) -> tuple[list[Report], list[Progress]]:
    """Train the tiny model; worker 0 keeps each checkpoint as folder/step."""
    reports: list[Report] = []
    progress: list[Progress] = []

    def keep(report: Report) -> None:
        reports.append(report)
        if rank == 0:
            checkpoint = folder / str(report.step)
            checkpoint.mkdir(parents=True)
            report.write(checkpoint)

    train(
        tiny_model(dropout),
        tiny_pairs(200, seed=1),
        tiny_pairs(40, seed=2),
        config,
        device=torch.device("cpu"),
        rank=rank,
        num_workers=num_workers,
        reduce=reduce,
        report=keep,
        progress=progress.append,
        resume_from=resume_from,
    )
    return reports, progress
