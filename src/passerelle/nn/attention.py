"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2).

Shapes: B batch, H heads, Q queries, K keys, D width of the model, E width of a head. A mask is True where a
query may attend. Weights are never stored on a module: `recording.record_attention` observes them.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from passerelle.nn.dropout import Dropout


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax of scores (..., Q, K) over K; mask broadcasts to it, True = may attend.

    A query with no key gets zero weights, not NaN.
    """
    if mask is None:
        return scores.softmax(-1)
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    return weights.masked_fill(~mask, 0.0)


def dot_product_scores(query: Tensor, key: Tensor) -> Tensor:
    """query (..., Q, E), key (..., K, E) -> scores (..., Q, K), scaled by 1 / sqrt(E) (eq. 1)."""
    return (query / math.sqrt(query.size(-1))) @ key.transpose(-2, -1)


class AttentionWeights(nn.Module):
    """`masked_softmax` as a module of its own, so that an observer can see the weights."""

    def forward(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """scores (B, H, Q, K) and a mask that broadcasts to it -> weights (B, H, Q, K)."""
        return masked_softmax(scores, mask)


class DotProductAttention(nn.Module):
    """Scaled dot-product attention with dropout on the weights.

    On a GPU torch's fused kernel computes it, unless somebody observes the weights. On CPUs it is
    matmul and softmax: in bfloat16 a ninth of the fused kernel's time at 11 tokens (benchmarks/README.md).
    """

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.weights = AttentionWeights()
        self.dropout = Dropout(dropout)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """query (B, H, Q, E), key and value (B, H, K, E), mask broadcasts to (B, H, Q, K) -> (B, H, Q, E)."""
        if query.is_cuda and not self.weights._forward_hooks:
            return self._fused(query, key, value, mask)
        weights = self.weights(dot_product_scores(query, key), mask)
        return self.dropout(weights) @ value

    def _fused(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        dropout = self.dropout.rate if self.training else 0.0
        context = functional.scaled_dot_product_attention(query, key, value, mask, dropout)
        if mask is None:
            return context
        return context.masked_fill(~mask.any(-1, keepdim=True), 0.0)  # a query with no key


class MultiHeadAttention(nn.Module):
    """Attention in num_heads projections of the input side by side (section 3.2.2).

    `keys_and_values` projects what is attended to; `forward` attends. Apart, so that a decoder projects each
    source sentence and each generated token once. Keys have no bias: it would add one number to all scores of a
    query, which softmax takes away again, and its gradient would be rounding noise that Adam blows up.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"num_heads must divide d_model={d_model}, but is {num_heads}")
        self.num_heads = num_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.attention = DotProductAttention(dropout)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """memory (B, K, D) -> keys and values, each (B, H, K, E)."""
        return split_heads(self.key(memory), self.num_heads), split_heads(self.value(memory), self.num_heads)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """query (B, Q, D), key and value (B, H, K, E), mask broadcasts to (B, H, Q, K) -> (B, Q, D)."""
        context = self.attention(split_heads(self.query(query), self.num_heads), key, value, mask)
        return self.output(merge_heads(context))


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(B, T, D) -> (B, H, T, E), with D = H * E."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, T, E) -> (B, T, D), with D = H * E."""
    return x.transpose(1, 2).flatten(2)


def causal_mask(num_new: int, num_past: int, device: torch.device) -> Tensor:
    """(Q, K) with Q = num_new and K = num_past + num_new: True where key position <= query position."""
    ones = torch.ones(num_new, num_past + num_new, dtype=torch.bool, device=device)
    return ones.tril(diagonal=num_past)
