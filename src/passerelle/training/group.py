"""The workers that train one model together, as training sees them; how they speak is the caller's matter."""

from collections.abc import Callable
from dataclasses import dataclass

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
