"""A model that is a random table: small enough to search its whole space, and of another kind than ours."""

import random
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

WORDS = (4, 5, 6, 7)
VOCAB_SIZE = 8  # PAD, UNK, BOS are never emitted: EOS and four words are left


@dataclass(frozen=True)
class Table:
    """Memory (the source sentences) or state (the target prefixes) as rows of ids."""

    rows: tuple[tuple[int, ...], ...]

    def reorder(self, index: Tensor) -> Self:
        return type(self)(tuple(self.rows[i] for i in index.tolist()))


class TableModel:
    """Logits that are a random function of the source and of all target tokens so far."""

    output = nn.Linear(1, VOCAB_SIZE)

    def __init__(self, bias: dict[int, float] | None = None, spread: float = 2.0) -> None:
        self.bias = bias or {}
        self.spread = spread
        self.batch_sizes: list[int] = []

    def logits(self, source: tuple[int, ...], prefix: tuple[int, ...]) -> Tensor:
        draw = random.Random(repr((source, prefix)))
        return torch.tensor([draw.gauss(0, self.spread) + self.bias.get(i, 0.0) for i in range(VOCAB_SIZE)])

    def encode(self, source: Tensor, source_lengths: Tensor) -> Table:
        lengths = source_lengths.tolist()
        return Table(tuple(tuple(row[:n]) for row, n in zip(source.tolist(), lengths, strict=True)))

    def start(self, memory: Table) -> Table:
        return Table(((),) * len(memory.rows))

    def decode(self, target_in: Tensor, memory: Table, state: Table) -> tuple[Tensor, Table]:
        self.batch_sizes.append(target_in.size(0))
        prefixes, logits = list(state.rows), []
        for t in range(target_in.size(1)):
            prefixes = [(*p, token) for p, token in zip(prefixes, target_in[:, t].tolist(), strict=True)]
            step = [self.logits(s, p) for s, p in zip(memory.rows, prefixes, strict=True)]
            logits.append(torch.stack(step))
        return torch.stack(logits, dim=1), Table(tuple(prefixes))
