"""Sequences of unlike length in two flat arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.integer[Any]]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ragged:
    """N sequences of token ids: sequence i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Ids
    """Token ids of all sequences, one behind the other."""
    offsets: NDArray[np.integer[Any]]
    """Where each sequence begins, and the end of the last (N + 1)."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Ids:
        """Sequence `index`, a view."""
        begin, end = self.offsets[index : index + 2].tolist()
        return self.ids[begin:end]

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Number of ids of each sequence (N)."""
        return np.diff(self.offsets).astype(np.int32, copy=False)

    def rows(self, start: int, stop: int) -> "Ragged":
        """Sequences start to stop, the ids a view."""
        offsets = self.offsets[start : stop + 1]
        return Ragged(self.ids[offsets[0] : offsets[-1]], offsets - offsets[0])


def offsets_of(lengths: NDArray[np.integer[Any]]) -> Integers:
    """Where sequences of these lengths begin when laid one behind the other, and where the last ends."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def join(parts: Sequence[Ragged]) -> Ragged:
    """The sequences of all parts, one part behind the other."""
    lengths = np.concatenate([part.lengths for part in parts])
    return Ragged(np.concatenate([part.ids for part in parts]), offsets_of(lengths))


def gather(parts: Sequence[Ragged], part: Integers, row: Integers) -> Ragged:
    """Copies of the sequences `parts[part[i]][row[i]]`, in that order; `part` and `row` have one length."""
    begins = np.empty(len(row), dtype=np.int64)
    ends = np.empty(len(row), dtype=np.int64)
    members = [(parts[number], np.flatnonzero(part == number)) for number in np.unique(part)]
    for one, places in members:
        begins[places] = one.offsets[row[places]]
        ends[places] = one.offsets[row[places] + 1]
    lengths = ends - begins
    offsets = offsets_of(lengths)
    ids = np.empty(offsets[-1], dtype=parts[0].ids.dtype)
    for one, places in members:
        steps = _count_up(lengths[places])
        taken = np.repeat(begins[places], lengths[places]) + steps
        ids[np.repeat(offsets[places], lengths[places]) + steps] = one.ids[taken]
    return Ragged(ids, offsets)


def _count_up(lengths: Integers) -> Integers:
    """0, 1, ... for each length in turn: [2, 3] gives [0, 1, 0, 1, 2]."""
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
