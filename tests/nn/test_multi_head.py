"""Multi-head attention head by head, and against torch's own module."""

import math

import pytest
import torch
from torch import Tensor, nn

from passerelle.nn.masking import length_mask
from passerelle.nn.multi_head import MultiHeadAttention, Scoring, merge_heads, split_heads

B, H, Q, K, E = 2, 3, 5, 7, 4
D = H * E


def head_by_head(ours: MultiHeadAttention, inputs: tuple[Tensor, Tensor, Tensor], lengths: Tensor) -> Tensor:
    """Equation 1 for each head, sequence and query; keys past lengths (B, Q) are cut off."""
    contexts = []
    for h, rows in enumerate(torch.arange(ours.output.in_features).chunk(ours.num_heads)):
        layers = ours.query, ours.key, ours.value
        query, key, value = (x @ layer.weight[rows].T for x, layer in zip(inputs, layers, strict=True))
        if ours.query.bias is not None:
            query, value = query + ours.query.bias[rows], value + ours.value.bias[rows]
        context = torch.zeros_like(query)
        for b in range(query.size(0)):
            for q in range(query.size(1)):
                keys = key[b, : lengths[b, q]]
                if hasattr(ours.attention, "score"):
                    scores = (query[b, q] + keys).tanh() @ ours.attention.score[h, 0]
                else:
                    scores = keys @ query[b, q] / math.sqrt(len(rows))
                context[b, q] = scores.exp() / scores.exp().sum() @ value[b, : lengths[b, q]]
        contexts.append(context)
    context = torch.cat(contexts, dim=-1) @ ours.output.weight.T
    return context if ours.output.bias is None else context + ours.output.bias


def with_random_biases(attention: MultiHeadAttention) -> MultiHeadAttention:
    for name, parameter in attention.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return attention.double()


@pytest.mark.parametrize("attention", ["dot", "additive"])
@pytest.mark.parametrize("bias", [True, False])
def test_heads_of_any_input_widths_equal_a_loop_over_heads(attention: Scoring, bias: bool) -> None:
    torch.manual_seed(1)
    ours = with_random_biases(
        MultiHeadAttention(
            D, H, 0.0, query_width=9, key_width=8, value_width=10, bias=bias, attention=attention
        )
    )
    query, key, value = torch.randn(B, Q, 9), torch.randn(B, K, 8), torch.randn(B, K, 10)
    inputs = query.double(), key.double(), value.double()
    lengths = torch.tensor([[1, 2, 3, 4, 5], [7, 6, 5, 4, 3]])
    with torch.no_grad():
        found = ours(inputs[0], *ours.keys_and_values(*inputs[1:]), length_mask(lengths, K))
        torch.testing.assert_close(found, head_by_head(ours, inputs, lengths))


@pytest.mark.parametrize("attention", ["dot", "additive"])
def test_five_heads_of_the_chapters_sizes_equal_a_loop_over_heads(attention: Scoring) -> None:
    torch.manual_seed(2)
    ours = with_random_biases(MultiHeadAttention(100, 5, 0.5, attention=attention)).eval()
    query, memory, lengths = torch.randn(2, 4, 100).double(), torch.randn(2, 6, 100).double(), [3, 2]
    with torch.no_grad():
        for keys in (memory, query):  # attention to other states, and self-attention
            mask = length_mask(torch.tensor(lengths), keys.size(1))
            expected = head_by_head(ours, (query, keys, keys), torch.tensor(lengths)[:, None].expand(2, 4))
            torch.testing.assert_close(ours(query, *ours.keys_and_values(keys), mask), expected)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("widths", [None, (8, 10)], ids=["equal", "unlike"])
def test_multi_head_attention_equals_torch_with_copied_weights(
    bias: bool, widths: tuple[int, int] | None
) -> None:
    torch.manual_seed(3)
    kdim, vdim = widths or (D, D)
    ours = with_random_biases(MultiHeadAttention(D, H, 0.0, key_width=kdim, value_width=vdim, bias=bias))
    theirs = nn.MultiheadAttention(D, H, bias=bias, kdim=kdim, vdim=vdim, batch_first=True).double()
    projections = (ours.query, ours.key, ours.value)
    with torch.no_grad():
        if widths:
            own = theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight
        else:
            own = theirs.in_proj_weight.chunk(3)
        for weight, projection in zip(own, projections, strict=True):
            weight.copy_(projection.weight)
        if bias:
            nn.init.normal_(theirs.in_proj_bias)  # that of keys too: it changes nothing
            theirs.in_proj_bias[:D], theirs.in_proj_bias[2 * D :] = ours.query.bias, ours.value.bias
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    query, key, value = (torch.randn(B, n, width).double() for n, width in ((Q, D), (K, kdim), (K, vdim)))
    lengths = torch.tensor([K, 4])
    expected, _ = theirs(query, key, value, key_padding_mask=torch.arange(K) >= lengths[:, None])
    torch.testing.assert_close(
        ours(query, *ours.keys_and_values(key, value), length_mask(lengths, K)), expected
    )


def test_a_mask_for_each_sequence_holds_for_all_its_heads() -> None:
    ours = MultiHeadAttention(D, H, 0.0)
    query, memory = torch.randn(H, Q, D), torch.randn(H, K, D)  # as many sequences as heads
    mask = length_mask(torch.tensor([2, 7, 4]), K)
    found, expected = (
        ours(query, *ours.keys_and_values(memory), each) for each in (mask, mask[:, None].expand(H, H, 1, K))
    )
    assert torch.equal(found, expected)


@pytest.mark.parametrize("attention", ["dot", "additive"])
def test_a_query_with_no_key_gets_the_output_bias_and_finite_gradients(attention: Scoring) -> None:
    torch.manual_seed(4)
    ours = with_random_biases(MultiHeadAttention(D, H, 0.0, attention=attention))
    inputs = [torch.randn(B, n, D, dtype=torch.float64, requires_grad=True) for n in (Q, K, K)]
    keys_and_values = ours.keys_and_values(*inputs[1:])
    found = ours(inputs[0], *keys_and_values, length_mask(torch.tensor([0, 4]), K))
    assert torch.equal(found[0], ours.output.bias.expand(Q, D))
    found.square().sum().backward()
    for x in [*inputs, *ours.parameters()]:
        assert x.grad is not None
        assert x.grad.isfinite().all()
        assert (x.grad != 0).any()  # of the other sequence


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(ValueError, match=r"num_heads must divide d_model=256, but is 3"):
        MultiHeadAttention(256, 3, 0.0)


def test_unknown_scores_are_refused() -> None:
    with pytest.raises(ValueError, match=r"attention must be dot or additive, but is general"):
        MultiHeadAttention(12, 3, 0.0, attention="general")


def test_merging_heads_undoes_splitting() -> None:
    x = torch.randn(B, Q, H * E)
    assert split_heads(x, H).shape == (B, H, Q, E)
    assert torch.equal(merge_heads(split_heads(x, H)), x)
