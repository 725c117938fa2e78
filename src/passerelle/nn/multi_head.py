"""Multi-head attention (Vaswani et al. 2017, section 3.2.2), scored by dot product or by a small network.

Shapes: B batch, H heads, Q queries, K keys, T either, D width of the model, E width of a head. A mask is True
where a query may attend.
"""

from typing import Literal

from torch import Tensor, nn

from passerelle.nn.additive import AdditiveHeads
from passerelle.nn.attention import DotProductAttention

Scoring = Literal["dot", "additive"]


class MultiHeadAttention(nn.Module):
    """Attention in num_heads projections of the input side by side.

    `keys_and_values` projects what is attended to; `forward` attends. Apart, so that a decoder projects each
    source sentence and each generated token once. query_width, key_width and value_width are d_model unless given;
    the result is d_model wide. bias: whether queries, values and output have one. Keys have none: it would add one
    number to all scores of a query, which softmax takes away again, and its gradient would be rounding noise that
    Adam blows up. (With additive scores the query's bias already stands for both.)
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float,
        *,
        query_width: int | None = None,
        key_width: int | None = None,
        value_width: int | None = None,
        bias: bool = True,
        attention: Scoring = "dot",
    ) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"num_heads must divide d_model={d_model}, but is {num_heads}")
        self.num_heads = num_heads
        self.query = nn.Linear(query_width or d_model, d_model, bias)
        self.key = nn.Linear(key_width or d_model, d_model, bias=False)
        self.value = nn.Linear(value_width or d_model, d_model, bias)
        self.output = nn.Linear(d_model, d_model, bias)
        self.attention = _attention_of_heads(attention, num_heads, d_model // num_heads, dropout)

    def keys_and_values(self, key: Tensor, value: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """key (B, K, key_width), value (B, K, value_width) or the same tensor -> each (B, H, K, E)."""
        value = key if value is None else value
        return split_heads(self.key(key), self.num_heads), split_heads(self.value(value), self.num_heads)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """query (B, Q, query_width), key and value (B, H, K, E) of `keys_and_values` -> (B, Q, D).

        mask broadcasts to (B, H, Q, K); one of three dimensions, as of `masking.length_mask`, is (B, Q, K) and
        holds for all heads. A query with no key gets the output's bias.
        """
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)  # (B, 1, Q, K)
        context = self.attention(split_heads(self.query(query), self.num_heads), key, value, mask)
        return self.output(merge_heads(context))


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(B, T, D) -> (B, H, T, E), with D = H * E.

    Laid out so, since a product of many small matrices would copy what is not, transposed keys value by value.
    """
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2).contiguous()


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, T, E) -> (B, T, D), with D = H * E."""
    return x.transpose(1, 2).flatten(2)


def _attention_of_heads(
    attention: Scoring, num_heads: int, d_head: int, dropout: float
) -> DotProductAttention | AdditiveHeads:
    match attention:
        case "dot":
            return DotProductAttention(dropout)
        case "additive":
            return AdditiveHeads(num_heads, d_head, dropout)
    raise ValueError(f"attention must be dot or additive, but is {attention}")
