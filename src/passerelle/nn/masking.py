"""Softmax over the keys that a query may attend, and the masks that say which.

Shapes: B batch, Q queries, K keys. A mask is True where a query may attend.
"""

import math

import torch
from torch import Tensor

from passerelle.nn.short_softmax import softmax


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax of scores (..., Q, K) over K; mask broadcasts to it, True = may attend.

    A query with no key gets zero weights, not NaN.
    """
    if mask is None:
        return softmax(scores)
    if not scores.is_cuda and mask.any(-1).all():  # on a GPU, to ask would be to wait
        forbidden = torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, -math.inf)
        return softmax(scores + forbidden)
    weights = softmax(scores.masked_fill(~mask, -math.inf))
    return weights.masked_fill(~mask, 0.0)


def length_mask(lengths: Tensor, num_keys: int) -> Tensor:
    """lengths (B,), one a sequence, -> (B, 1, K); lengths (B, Q), one a query, -> (B, Q, K); K = num_keys.

    True for the first `length` keys; a length of 0 allows none. Raises ValueError for other shapes, for what are
    no whole numbers, and for a length below 0 or above num_keys; to check them waits for a GPU.
    """
    if lengths.dim() not in (1, 2):
        raise ValueError(f"lengths must be (B,) or (B, Q), but their shape is {tuple(lengths.shape)}")
    if lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise ValueError(f"lengths must be whole numbers, but are {lengths.dtype}")
    wrong = lengths[(lengths < 0) | (lengths > num_keys)]
    if wrong.numel():
        raise ValueError(f"lengths must be from 0 to num_keys={num_keys}, but one is {int(wrong[0])}")
    mask = torch.arange(num_keys, device=lengths.device) < lengths.unsqueeze(-1)
    return mask if lengths.dim() == 2 else mask.unsqueeze(1)


def causal_mask(num_new: int, num_past: int, device: torch.device) -> Tensor:
    """(Q, K) with Q = num_new and K = num_past + num_new: True where key position <= query position."""
    ones = torch.ones(num_new, num_past + num_new, dtype=torch.bool, device=device)
    return ones.tril(diagonal=num_past)
