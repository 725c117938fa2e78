"""Files of batches for the peers' programs, of the sentences that ours trains on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from passerelle.config import TrainingConfig
from passerelle.data.pairs import SentencePairs
from passerelle.data.special import BOS, EOS, PAD
from passerelle.training.batches import planned_steps

RANDOM = 64
"""Sentences of a batch that is not made of like lengths."""
TARGET_TOKENS = 250_000
"""In each file, about; a program that wants more begins again."""


def write_batches(pairs: SentencePairs, config: TrainingConfig, batch: int, path: Path) -> None:
    """Batches as `workload.Batch` describes them: RANDOM sentences at random, or `batch` tokens by our plan."""
    if batch == RANDOM:
        order = np.random.default_rng(config.seed).permutation(len(pairs))
        steps: Iterator[Any] = iter(np.split(order, np.arange(RANDOM, len(order), RANDOM)))
    else:
        update = {"micro_batch_tokens": batch, "micro_batches_per_step": 1}
        steps = (rows for [rows] in planned_steps(pairs, config.model_copy(update=update)))
    batches: list[tuple[Tensor, Tensor]] = []
    num_tokens = 0
    while num_tokens < TARGET_TOKENS:
        rows = next(steps).tolist()
        sources = [[*pairs.source(row).tolist(), EOS] for row in rows]
        targets = [[BOS, *pairs.target(row).tolist(), EOS] for row in rows]
        batches.append((padded(sources), padded(targets)))
        num_tokens += sum(map(len, targets)) - len(targets)
    torch.save(batches, path)


def padded(sentences: list[list[int]]) -> Tensor:
    """(B, T) int64."""
    longest = max(map(len, sentences))
    return torch.tensor([sentence + [PAD] * (longest - len(sentence)) for sentence in sentences])
