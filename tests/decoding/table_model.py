"""A model that is a random table: small enough to search its whole space, and of another kind than ours."""

import random
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from passerelle.data.special import BOS, PAD
from passerelle.decoding.hypothesis import Hypothesis
from passerelle.decoding.search import search

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


def pad(sentences: list[list[int]], extra: int = 0) -> tuple[Tensor, Tensor]:
    """source (N, S) with so many columns of padding more than needed, and source_lengths (N,)."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    source = torch.full((len(sentences), int(lengths.max()) + extra), PAD)
    for row, sentence in zip(source, sentences, strict=True):
        row[: len(sentence)] = torch.tensor(sentence)
    return source, lengths


def run_search(
    model: object, sentences: list[list[int]], max_lengths: list[int], *, extra: int = 0, **settings: Any
) -> list[list[Hypothesis]]:
    defaults = {"beam_size": 3, "length_penalty": 1.0}
    return search(
        model, *pad(sentences, extra), max_lengths=torch.tensor(max_lengths), **(defaults | settings)
    )


def log_prob_of(model: TableModel, source: list[int], ids: tuple[int, ...]) -> float:
    """Teacher-forced, token by token, in float64."""
    prefixes = [(BOS, *ids[:t]) for t in range(len(ids))]
    steps = (model.logits(tuple(source), prefix).double().log_softmax(-1) for prefix in prefixes)
    return sum(float(step[token]) for step, token in zip(steps, ids, strict=True))
