"""From rows of token ids to the tensors of one micro-batch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from passerelle.data.special import BOS, EOS, PAD

Ids = NDArray[np.integer[Any]]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """One micro-batch. B sentences, S and T the longest lengths, N real target tokens."""

    source: Tensor
    """(B, S) int64, each ends with EOS, then PAD."""
    source_lengths: Tensor
    """(B,) int64, EOS counted."""
    target_in: Tensor
    """(B, T) int64, each begins with BOS."""
    target_out: Tensor
    """(N,) int64, the tokens to predict, EOS last in each sentence, without padding."""
    target_positions: Tensor
    """(N,) int64, where in the flattened (B * T) those tokens stand."""

    @property
    def num_tokens(self) -> int:
        """Real target tokens, EOS counted."""
        return self.target_out.size(0)

    def to(self, device: torch.device) -> "Batch":
        """The same on `device`."""
        if device.type == "cpu":
            return self
        return Batch(*(tensor.pin_memory().to(device, non_blocking=True) for tensor in vars(self).values()))


def make_batch(source_ids: Ids, source_offsets: Integers, target_ids: Ids, target_offsets: Integers) -> Batch:
    """Ids of B sentences one after another, and offsets (B + 1,) of their beginnings, without BOS and EOS."""
    source, source_lengths, _ = pad(source_ids, source_offsets, last=EOS)
    target_out, _, positions = pad(target_ids, target_offsets, last=EOS)
    target_in = np.full_like(target_out, PAD)
    target_in[:, 0] = BOS
    target_in[:, 1:] = target_out[:, :-1]
    target_in[target_in == EOS] = PAD  # what followed the end of a shorter sentence
    return Batch(
        source=torch.from_numpy(source),
        source_lengths=torch.from_numpy(source_lengths),
        target_in=torch.from_numpy(target_in),
        target_out=torch.from_numpy(target_out.ravel()[positions]),
        target_positions=torch.from_numpy(positions),
    )


def pad(ids: Ids, offsets: Integers, last: int) -> tuple[Integers, Integers, Integers]:
    """Padded rows (B, T) ending with `last`, their lengths (B,) with it, and flat positions (N,) of real tokens."""
    lengths = np.diff(offsets).astype(np.int64)
    columns = np.arange(lengths.max() + 1)
    padded = np.full((len(lengths), len(columns)), PAD, dtype=np.int64)
    padded[columns < lengths[:, None]] = ids
    padded[np.arange(len(lengths)), lengths] = last
    positions = np.flatnonzero(columns <= lengths[:, None])
    return padded, lengths + 1, positions
