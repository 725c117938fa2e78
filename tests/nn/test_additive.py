"""Additive attention against loops in float64 and the chapter's example."""

import math

import pytest
import torch
from torch import Tensor

from passerelle.nn.additive import AdditiveAttention, AdditiveHeads, additive_scores
from passerelle.nn.masking import length_mask

B, H, Q, K, E = 2, 3, 5, 7, 4
A, QUERY_WIDTH, KEY_WIDTH, VALUE_WIDTH = 6, 9, 8, 10
LENGTHS = torch.tensor([7, 3])


def loop_scores(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """query (Q, A), key (K, A), weight (A,) -> (Q, K), one number at a time."""
    scores = torch.zeros(len(query), len(key), dtype=torch.float64)
    for q in range(len(query)):
        for k in range(len(key)):
            for a in range(len(weight)):
                scores[q, k] += weight[a] * math.tanh(query[q, a] + key[k, a])
    return scores


def random_inputs(seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = (B, Q, QUERY_WIDTH), (B, K, KEY_WIDTH), (B, K, VALUE_WIDTH)
    query, key, value = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return query, key, value


def random_heads() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    query, key, value = (torch.randn(B, H, n, E, generator=generator, dtype=torch.float64) for n in (Q, K, K))
    return query, key, value


def make_attention(dropout: float = 0.0) -> AdditiveAttention:
    torch.manual_seed(3)
    return AdditiveAttention(QUERY_WIDTH, KEY_WIDTH, A, dropout).double()


def test_additive_attention_equals_a_loop_over_the_formula() -> None:
    attention, (query, key, value) = make_attention(), random_inputs()
    with torch.no_grad():
        found = attention(query, attention.project_keys(key), value, length_mask(LENGTHS, K))
        for b, length in enumerate(LENGTHS.tolist()):
            scores = loop_scores(
                query[b] @ attention.query.weight.T,
                key[b, :length] @ attention.key.weight.T,
                attention.score.weight[0],
            )
            weights = scores.exp() / scores.exp().sum(1, keepdim=True)
            torch.testing.assert_close(found[b], weights @ value[b, :length])


def test_each_head_is_scored_by_a_vector_of_its_own() -> None:
    query, key, _ = random_heads()
    weight = torch.randn(H, 1, E, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    found = additive_scores(query, key, weight)
    for b in range(B):
        for h in range(H):
            torch.testing.assert_close(found[b, h], loop_scores(query[b, h], key[b, h], weight[h, 0]))


def test_like_keys_share_the_weight_as_in_the_chapters_example() -> None:
    attention = AdditiveAttention(20, 2, 8, 0.1).eval()
    value = torch.arange(40.0).reshape(1, 10, 4).expand(2, 10, 4)
    mask = length_mask(torch.tensor([2, 6]), 10)
    found = attention(torch.randn(2, 1, 20), attention.project_keys(torch.ones(2, 10, 2)), value, mask)
    torch.testing.assert_close(found, torch.tensor([[[2.0, 3, 4, 5]], [[10.0, 11, 12, 13]]]))


def test_what_stands_past_the_length_does_not_change_the_result() -> None:
    attention, (query, key, value) = make_attention(), random_inputs()
    mask = length_mask(LENGTHS, K)
    expected = attention(query, attention.project_keys(key), value, mask)
    is_padding = torch.arange(K) >= LENGTHS[:, None]
    _, other_key, other_value = random_inputs(seed=5)
    key[is_padding], value[is_padding] = other_key[is_padding], 1e3 * other_value[is_padding]
    assert torch.equal(attention(query, attention.project_keys(key), value, mask), expected)


def test_a_query_with_no_key_gets_zeros_and_finite_gradients() -> None:
    attention, (query, key, value) = make_attention(), random_inputs()
    inputs = [x.requires_grad_() for x in (query, key, value)]
    context = attention(query, attention.project_keys(key), value, length_mask(torch.tensor([0, 4]), K))
    assert (context[0] == 0).all()
    context.square().sum().backward()
    for x in [*inputs, *attention.parameters()]:
        assert x.grad is not None
        assert x.grad.isfinite().all()
        assert (x.grad != 0).any()  # of the other sequence


@pytest.mark.parametrize("of_heads", [False, True])
def test_dropout_drops_weights_and_scales_up_the_others(of_heads: bool) -> None:
    if of_heads:
        attention, (query, key, _) = AdditiveHeads(H, E, 0.5).double(), random_heads()
    else:
        attention, (query, key, _) = make_attention(dropout=0.5), random_inputs()
        key = attention.project_keys(key)
    everything = torch.eye(K, dtype=torch.float64).expand(*key.shape[:-1], K)  # so the result is the weights
    torch.manual_seed(7)
    dropped = attention(query, key, everything, None)
    kept = attention.eval()(query, key, everything, None)
    assert 0 < (dropped == 0).sum() < dropped.numel()
    torch.testing.assert_close(dropped, torch.where(dropped == 0, 0.0, 2 * kept))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_gives_the_same_context_and_gradient_within_it(dtype: torch.dtype) -> None:
    def context_and_gradient(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        torch.manual_seed(6)
        attention = AdditiveHeads(H, E, 0.0).to(dtype)
        query, key, value = (x.to(dtype) for x in random_heads())
        context = attention(query, key, value, length_mask(LENGTHS, K).unsqueeze(1))
        context.square().sum().backward()
        assert context.dtype == dtype
        assert attention.score.grad is not None
        return context.double(), attention.score.grad.double()

    tolerance = 8 * torch.finfo(dtype).eps
    for found, exact in zip(context_and_gradient(dtype), context_and_gradient(torch.float64), strict=True):
        torch.testing.assert_close(found, exact, rtol=0, atol=tolerance * exact.abs().max().item())
