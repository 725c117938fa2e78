"""Dot-product attention against textbook loops in float64, torch's kernel and the chapter's example; dropout."""

import math

import pytest
import torch
from torch import Tensor

from passerelle.nn.attention import DotProductAttention
from passerelle.nn.dropout import Dropout, keep_mask
from passerelle.nn.masking import length_mask

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


def test_like_keys_share_the_weight_as_in_the_chapters_example() -> None:
    attention = DotProductAttention(0.5).eval()
    value = torch.arange(40.0).reshape(1, 10, 4).expand(2, 10, 4)
    mask = length_mask(torch.tensor([2, 6]), 10)
    found = attention(torch.randn(2, 1, 2), torch.ones(2, 10, 2), value, mask)
    torch.testing.assert_close(found, torch.tensor([[[2.0, 3, 4, 5]], [[10.0, 11, 12, 13]]]))


def test_dropout_drops_weights_and_scales_up_the_others() -> None:
    query, key, _, _ = random_inputs(torch.float64)
    everything = torch.eye(K, dtype=torch.float64).expand(B, H, K, K)  # so the result is the weights
    attention = DotProductAttention(0.5)
    torch.manual_seed(2)
    dropped = attention(query, key, everything, None)
    kept = attention.eval()(query, key, everything, None)
    assert 0 < (dropped == 0).sum() < dropped.numel()
    torch.testing.assert_close(dropped, torch.where(dropped == 0, 0.0, 2 * kept))


def test_a_query_with_no_key_gets_zeros_and_finite_gradients() -> None:
    query, key, value, mask = random_inputs(torch.float64)
    inputs = [x.requires_grad_() for x in (query, key, value)]
    context = DotProductAttention(0.0)(query, key, value, mask[:, None])
    assert (context[1, :, 2] == 0).all()
    context.square().sum().backward()
    for x in inputs:
        assert x.grad is not None
        assert x.grad.isfinite().all()


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
