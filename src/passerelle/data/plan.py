"""The order of the data: which sentence pairs make up which optimiser step.

Arithmetic only: the plan is a function of the lengths, the seed and the step number, never of the number of
workers or of restarts. A micro-batch holds pairs of like length, so that little is padding; a step is a fixed
number of micro-batches of different lengths; steps run on across the ends of epochs, so none is short.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any

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
    micro_batches = _micro_batches(
        count(),
        shard_rows,
        shard_lengths,
        micro_batch_tokens,
        micro_batch_sentences,
        seed,
        window_rows,
        to_skip=first_step * micro_batches_per_step,
    )
    while True:
        yield list(islice(micro_batches, micro_batches_per_step))


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
    return _micro_batches(
        [epoch], shard_rows, shard_lengths, micro_batch_tokens, micro_batch_sentences, seed, window_rows
    )


def _micro_batches(
    epochs: Iterable[int],
    shard_rows: Sequence[int],
    shard_lengths: Callable[[int], Lengths],
    budget: int,
    most: int | None,
    seed: int,
    window_rows: int,
    to_skip: int = 0,
) -> Iterator[Indices]:
    """The micro-batches of the epochs, without the first to_skip; a window skipped whole is not sorted."""
    starts = np.concatenate(([0], np.cumsum(shard_rows)))
    if starts[-1] == 0:
        raise ValueError("no sentence pairs to train on: the shards are empty; see the stage `prepare`")
    for epoch in epochs:
        generator = np.random.default_rng((seed, epoch))
        for window in _windows(generator.permutation(len(shard_rows)), shard_rows, window_rows):
            lengths = [shard_lengths(shard) for shard in window]
            source_lengths = np.concatenate([source for source, _ in lengths])
            target_lengths = np.concatenate([target for _, target in lengths])
            width = int(source_lengths.max()) + 1
            kinds = target_lengths.astype(np.int64) * width + source_lengths
            kinds = kinds.astype(np.min_scalar_type(kinds.max()))  # numpy sorts 16 bits by radix
            ties = generator.random(len(kinds))
            cuts = _cut(kinds, width, budget, most or len(kinds))
            numbers = generator.permutation(len(cuts) - 1)
            if to_skip >= len(numbers):
                to_skip -= len(numbers)
                continue
            rows = np.concatenate([np.arange(starts[shard], starts[shard + 1]) for shard in window])
            rows = rows[np.lexsort((ties, kinds))]
            for number in numbers[to_skip:]:
                yield rows[cuts[number] : cuts[number + 1]]
            to_skip = 0


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


def _cut(kinds: NDArray[np.integer[Any]], width: int, budget: int, most: int) -> Indices:
    """Boundaries of micro-batches over pairs sorted by kind, each micro-batch as large as its limits allow.

    A pair's kind is target length * width + source length. At most `most` pairs, and pairs * longest side is at most
    budget. Pairs of one kind are cut together, so the time depends on how many kinds there are.
    """
    different, counts = np.unique(kinds, return_counts=True)
    lengths = np.maximum(*divmod(different.astype(np.int64), width))
    if lengths.max() > budget:
        raise ValueError(
            f"training.micro_batch_tokens must be at least {lengths.max()}, the longest sentence in the shards "
            f"(see shards.max_tokens), but is {budget}"
        )
    cuts = [np.zeros(1, np.int64)]
    longest = end = 0
    for length, stop in zip(lengths.tolist(), np.cumsum(counts).tolist(), strict=True):
        longest = max(longest, length)  # of the micro-batch that may grow: from the last cut to `end`
        limit = int(cuts[-1][-1]) + min(most, budget // longest)
        if limit < stop:
            cuts.append(np.arange(max(limit, end), stop, min(most, budget // length)))
            longest = length
        end = stop
    return np.concatenate([*cuts, [end]])
