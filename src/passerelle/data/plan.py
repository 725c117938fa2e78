"""The order of the data: which sentence pairs make up which optimiser step.

Arithmetic only: the plan is a function of the lengths, the seed and the step number, never of the number of
workers or of restarts. A micro-batch holds pairs of like length, so that little is padding; a step is a fixed
number of micro-batches of different lengths; steps run on across the ends of epochs, so none is short.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Lengths = tuple[NDArray[np.int32], NDArray[np.int32]]
Indices = NDArray[np.int64]

WINDOW_ROWS = 4_000_000
"""Pairs planned together, at least one shard; bounds the plan's memory."""


def training_steps(
    shard_rows: Sequence[int],
    shard_lengths: Callable[[int], Lengths],
    *,
    micro_batch_tokens: int,
    micro_batches_per_step: int,
    seed: int,
    micro_batch_sentences: int | None = None,
    first_step: int = 0,
    window_rows: int = WINDOW_ROWS,
) -> Iterator[list[Indices]]:
    """The steps from first_step on, without end: each a list of micro-batches (row numbers over all shards).

    A micro-batch has at most micro_batch_tokens padded tokens on its longer side and micro_batch_sentences pairs.
    shard_rows: pairs in each shard. shard_lengths(i): source and target lengths of shard i's pairs, with their
    end-of-sentence token. Raises ValueError where a pair alone is over micro_batch_tokens.
    """
    waiting: list[Indices] = []
    to_skip = first_step * micro_batches_per_step
    epoch = 0
    while True:
        for micro_batch in epoch_micro_batches(
            shard_rows,
            shard_lengths,
            micro_batch_tokens=micro_batch_tokens,
            micro_batch_sentences=micro_batch_sentences,
            seed=seed,
            epoch=epoch,
            window_rows=window_rows,
        ):
            if to_skip:
                to_skip -= 1
                continue
            waiting.append(micro_batch)
            if len(waiting) == micro_batches_per_step:
                yield waiting
                waiting = []
        epoch += 1


def epoch_micro_batches(
    shard_rows: Sequence[int],
    shard_lengths: Callable[[int], Lengths],
    *,
    micro_batch_tokens: int,
    seed: int,
    epoch: int,
    micro_batch_sentences: int | None = None,
    window_rows: int = WINDOW_ROWS,
) -> Iterator[Indices]:
    """Every pair of the corpus once, in micro-batches in random order (arguments: see `training_steps`)."""
    generator = np.random.default_rng((seed, epoch))
    starts = np.concatenate(([0], np.cumsum(shard_rows)))
    if starts[-1] == 0:
        raise ValueError("no sentence pairs to train on: the shards are empty; see the stage `prepare`")
    for window in _windows(generator.permutation(len(shard_rows)), shard_rows, window_rows):
        lengths = [shard_lengths(shard) for shard in window]
        rows = np.concatenate([np.arange(starts[shard], starts[shard + 1]) for shard in window])
        source_lengths = np.concatenate([source for source, _ in lengths])
        target_lengths = np.concatenate([target for _, target in lengths])
        order = np.lexsort((generator.random(len(rows)), source_lengths, target_lengths))
        longest = np.maximum(source_lengths, target_lengths)[order].astype(np.int64)
        cuts = _cut(longest, micro_batch_tokens, micro_batch_sentences or len(rows))
        for number in generator.permutation(len(cuts) - 1):
            yield rows[order[cuts[number] : cuts[number + 1]]]


def _windows(order: NDArray[np.int64], shard_rows: Sequence[int], window_rows: int) -> Iterator[list[int]]:
    """Shards in `order`, in groups of at most window_rows pairs (or one shard)."""
    window: list[int] = []
    num_rows = 0
    for shard in order.tolist():
        if window and num_rows + shard_rows[shard] > window_rows:
            yield window
            window, num_rows = [], 0
        window.append(shard)
        num_rows += shard_rows[shard]
    yield window


def _cut(longest: NDArray[np.int64], budget: int, most: int) -> list[int]:
    """Boundaries of micro-batches over pairs in this order, each as large as its limits allow.

    longest: the longer side of each pair. At most `most` pairs, and pairs * longest side is at most budget.
    """
    if longest.max() > budget:
        raise ValueError(
            f"training.micro_batch_tokens must be at least {longest.max()}, the longest sentence in the shards "
            f"(see shards.max_tokens), but is {budget}"
        )
    cuts = [0]
    while cuts[-1] < len(longest):
        start = cuts[-1]
        slice_ = longest[start : start + min(most, budget // int(longest[start]))]
        padded = np.maximum.accumulate(slice_) * np.arange(1, len(slice_) + 1)
        cuts.append(start + int(np.searchsorted(padded, budget, side="right")))
    return cuts
