"""Additive attention (Bahdanau et al. 2015, appendix A.1.2): a small network scores each query against each key.

Shapes: B batch, H heads, Q queries, K keys, A hidden width of the scoring network, E width of a head. A mask is
True where a query may attend.
"""

import math

import torch
from torch import Tensor, nn

from passerelle.nn.attention import AttentionWeights
from passerelle.nn.dropout import Dropout


def additive_scores(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """query (..., Q, A), key (..., K, A) -> scores (..., Q, K), each weight . tanh(query + key).

    Query and key are already projected; weight (..., A) broadcasts to query. The sums (..., Q, K, A) are held in
    memory, and for the gradient kept: A times what dot-product scores need.
    """
    hidden = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3))  # (..., Q, K, A)
    return torch.linalg.vecdot(hidden, weight.unsqueeze(-2))


class AdditiveAttention(nn.Module):
    """Attention by score(q, k) = w . tanh(W_q q + W_k k), with dropout on the weights.

    Queries and keys may differ in width. Keys are projected apart, so that a decoder does it once a sentence.
    """

    def __init__(self, query_width: int, key_width: int, hidden_width: int, dropout: float) -> None:
        super().__init__()
        self.query = nn.Linear(query_width, hidden_width, bias=False)
        self.key = nn.Linear(key_width, hidden_width, bias=False)
        self.score = nn.Linear(hidden_width, 1, bias=False)
        self.weights = AttentionWeights()
        self.dropout = Dropout(dropout)

    def project_keys(self, key: Tensor) -> Tensor:
        """key (B, K, key_width) -> (B, K, A), what `forward` attends to."""
        return self.key(key)

    def forward(self, query: Tensor, projected_keys: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """query (B, Q, query_width), projected_keys (B, K, A), value (B, K, value_width) -> (B, Q, value_width).

        mask broadcasts to (B, Q, K). A query with no key gets zeros.
        """
        scores = additive_scores(self.query(query), projected_keys, self.score.weight)
        return self.dropout(self.weights(scores, mask)) @ value


class AdditiveHeads(nn.Module):
    """Additive attention of each head by itself, in place of `attention.DotProductAttention`.

    score(q, k) = w_h . tanh(q + k), with one learned w_h for head h: the projections of multi-head attention are
    W_q and W_k. Sums (B, H, Q, K, E) are held in memory, E times the scores of the dot product.
    """

    def __init__(self, num_heads: int, d_head: int, dropout: float) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.empty(num_heads, 1, d_head))
        nn.init.uniform_(self.score, -1 / math.sqrt(d_head), 1 / math.sqrt(d_head))  # as nn.Linear(d_head, 1)
        self.weights = AttentionWeights()
        self.dropout = Dropout(dropout)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """query (B, H, Q, E), key and value (B, H, K, E), mask broadcasts to (B, H, Q, K) -> (B, H, Q, E)."""
        weights = self.weights(additive_scores(query, key, self.score), mask)
        return self.dropout(weights) @ value
