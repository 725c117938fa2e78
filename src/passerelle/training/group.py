"""The workers that train one model together, as training sees them; how they speak is the caller's matter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

Reduce = Callable[[Tensor], None]
"""Adds a tensor up over all workers, in place."""


@dataclass(frozen=True)
class Group:
    """One worker's view of all."""

    rank: int
    """This worker's number, from 0."""
    num_workers: int
    reduce: Reduce
    """With one worker it leaves the tensor as it is."""


ALONE = Group(0, 1, lambda tensor: None)
"""A worker that has no others."""


class Bleu(Protocol):
    """How all workers together measure BLEU; can be pickled."""

    def on(
        self, device: torch.device, *, rank: int, num_workers: int, reduce: Reduce
    ) -> Callable[[Mapping[str, Tensor]], float]:
        """A worker's part: a function from parameters, by name, to BLEU, which all workers call together."""
