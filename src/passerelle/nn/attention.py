"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1).

Shapes: B batch, H heads, Q queries, K keys, E width of a query. A mask is True where a query may attend.
Weights are never stored on a module: `recording.record_attention` observes them.
"""

import math

from torch import Tensor, nn
from torch.nn import functional

from passerelle.nn.dropout import Dropout
from passerelle.nn.masking import masked_softmax


def dot_product_scores(query: Tensor, key: Tensor) -> Tensor:
    """query (..., Q, E), key (..., K, E) -> scores (..., Q, K), scaled by 1 / sqrt(E) (eq. 1)."""
    return (query @ key.transpose(-2, -1)).mul_(1.0 / math.sqrt(query.size(-1)))


class AttentionWeights(nn.Module):
    """`masked_softmax` as a module of its own, so that an observer can see the weights."""

    def forward(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """scores (B, H, Q, K), or (B, Q, K) of one head, and a mask that broadcasts to it -> weights alike."""
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
        """query (B, H, Q, E), key and value (B, H, K, E), mask broadcasts to (B, H, Q, K) -> (B, H, Q, E).

        All without H too. A value may have another width, which is then the result's.
        """
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
