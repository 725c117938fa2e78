"""Attention against textbook loops in float64 and against torch's own module."""

import math

import pytest
import torch
from torch import Tensor, nn

from passerelle.nn.attention import (
    DotProductAttention,
    MultiHeadAttention,
    causal_mask,
    masked_softmax,
    merge_heads,
    split_heads,
)
from passerelle.nn.dropout import Dropout, keep_mask

B, H, Q, K, E = 2, 3, 5, 7, 4


def loop_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Equation 1 of Vaswani et al., one number at a time."""
    context = torch.zeros(B, H, Q, E, dtype=torch.float64)
    for b in range(B):
        for h in range(H):
            for q in range(Q):
                keys = [k for k in range(K) if mask[b, q, k]]
                scores = [float(query[b, h, q] @ key[b, h, k]) / math.sqrt(E) for k in keys]
                total = sum(math.exp(score) for score in scores)
                for k, score in zip(keys, scores, strict=True):
                    context[b, h, q] += math.exp(score) / total * value[b, h, k]
    return context


def random_inputs(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(B, H, n, E, generator=generator, dtype=dtype) for n in (Q, K, K))
    mask = torch.rand(B, Q, K, generator=generator) < 0.6
    mask[1, 2] = False  # a query with no key
    return query, key, value, mask


def test_dot_product_attention_equals_a_loop_over_the_formula() -> None:
    query, key, value, mask = random_inputs(torch.float64)
    context = DotProductAttention(0.0)(query, key, value, mask[:, None])
    torch.testing.assert_close(context, loop_attention(query, key, value, mask))


def test_fused_kernel_equals_explicit_attention_also_for_a_query_with_no_key() -> None:
    query, key, value, mask = random_inputs(torch.float64)
    attention = DotProductAttention(0.0).eval()
    fused = attention._fused(query, key, value, mask[:, None])
    torch.testing.assert_close(fused, attention(query, key, value, mask[:, None]))
    assert fused[1, :, 2].abs().max() == 0.0


def test_masked_softmax_gives_a_query_with_no_key_zero_weights() -> None:
    scores = torch.randn(2, 3, 4)
    mask = torch.tensor([[True, True, False, False], [False] * 4, [True] * 4])
    weights = masked_softmax(scores, mask)
    torch.testing.assert_close(weights.sum(-1), torch.tensor([1.0, 0.0, 1.0]).expand(2, 3))
    assert (weights[:, 0, 2:] == 0).all()
    torch.testing.assert_close(weights[:, 0, :2], scores[:, 0, :2].softmax(-1))


def test_gradient_through_a_query_with_no_key_is_finite() -> None:
    scores = torch.randn(2, 4, requires_grad=True)
    masked_softmax(scores, torch.tensor([[True] * 4, [False] * 4])).square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_multi_head_attention_equals_torch_with_copied_weights() -> None:
    torch.manual_seed(2)
    ours = MultiHeadAttention(H * E, H, 0.0).double()
    theirs = nn.MultiheadAttention(H * E, H, batch_first=True).double()
    projections = (ours.query, ours.key, ours.value)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([projection.weight for projection in projections]))
        nn.init.normal_(theirs.in_proj_bias)
        ours.query.bias.copy_(theirs.in_proj_bias[: H * E])
        ours.value.bias.copy_(theirs.in_proj_bias[2 * H * E :])
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    query, memory = torch.randn(B, Q, H * E).double(), torch.randn(B, K, H * E).double()
    is_padding = torch.arange(K) >= torch.tensor([[K], [4]])
    expected, _ = theirs(query, memory, memory, key_padding_mask=is_padding)
    found = ours(query, *ours.keys_and_values(memory), ~is_padding[:, None, None])
    torch.testing.assert_close(found, expected)


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(ValueError, match=r"num_heads must divide d_model=256, but is 3"):
        MultiHeadAttention(256, 3, 0.0)


def test_merging_heads_undoes_splitting() -> None:
    x = torch.randn(B, Q, H * E)
    assert split_heads(x, H).shape == (B, H, Q, E)
    assert torch.equal(merge_heads(split_heads(x, H)), x)


def test_causal_mask_lets_new_tokens_see_the_past_and_themselves() -> None:
    expected = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    assert torch.equal(causal_mask(3, 2, torch.device("cpu")), expected)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_drops_at_its_rate_and_keeps_the_mean(rate: float) -> None:
    torch.manual_seed(3)
    mask = keep_mask(torch.Size([1001, 997]), rate, torch.float64)
    standard_error = math.sqrt(rate * (1 - rate) / mask.numel())
    assert abs((mask == 0).double().mean().item() - rate) < 5 * standard_error
    assert abs(mask.mean().item() - 1.0) < 5 * standard_error / (1 - rate)
    assert mask.unique().numel() == 2


def test_dropout_is_the_identity_outside_training() -> None:
    x = torch.randn(5, 7)
    assert torch.equal(Dropout(0.5).eval()(x), x)


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_impossible_dropout_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match=rf"dropout must be at least 0 and below 1, but is {rate}"):
        Dropout(rate)
