"""Masked softmax and the masks it takes, with the chapter's examples."""

import re

import pytest
import torch
from torch import Tensor

from passerelle.nn.masking import causal_mask, length_mask, masked_softmax


@pytest.mark.parametrize("lengths", [[2, 3], [[1, 3], [2, 4]], [0, 4], [[0, 4], [1, 0]]], ids=str)
def test_masked_softmax_shares_the_weight_among_the_first_keys(lengths: list[int] | list[list[int]]) -> None:
    scores = torch.randn(2, 2, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights = masked_softmax(scores, length_mask(torch.tensor(lengths), 4))
    for b, of_sequence in enumerate(lengths):
        for q in range(2):
            length = of_sequence[q] if isinstance(of_sequence, list) else of_sequence
            exponentials = scores[b, q, :length].exp()
            torch.testing.assert_close(weights[b, q, :length], exponentials / exponentials.sum())
            assert (weights[b, q, length:] == 0).all()


def test_masked_softmax_without_a_mask_uses_all_keys() -> None:
    scores = torch.randn(2, 2, 4)
    assert torch.equal(masked_softmax(scores), masked_softmax(scores, length_mask(torch.tensor([4, 4]), 4)))


def test_masked_softmax_gives_a_query_with_no_key_zero_weights() -> None:
    scores = torch.randn(2, 3, 4)
    mask = torch.tensor([[True, True, False, False], [False] * 4, [True] * 4])
    weights = masked_softmax(scores, mask)
    torch.testing.assert_close(weights.sum(-1), torch.tensor([1.0, 0.0, 1.0]).expand(2, 3))
    assert (weights[:, 0, 2:] == 0).all()
    torch.testing.assert_close(weights[:, 0, :2], scores[:, 0, :2].softmax(-1))


def test_masked_softmax_leaves_its_scores_as_they_were() -> None:
    scores = torch.randn(2, 3, 4)
    before = scores.clone()
    masked_softmax(scores, length_mask(torch.tensor([1, 0]), 4))
    assert torch.equal(scores, before)


def test_gradient_through_a_query_with_no_key_is_finite() -> None:
    scores = torch.randn(2, 4, requires_grad=True)
    masked_softmax(scores, torch.tensor([[True] * 4, [False] * 4])).square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_length_mask_of_sequences_holds_for_each_query_and_broadcasts() -> None:
    a_sequence = length_mask(torch.tensor([2, 0, 5]), 5)
    a_query = length_mask(torch.tensor([[2] * 7, [0] * 7, [5] * 7]), 5)
    assert torch.equal(a_sequence.expand(3, 7, 5), a_query)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (torch.tensor(3), "lengths must be (B,) or (B, Q), but their shape is ()"),
        (torch.ones(2, 3, 4).long(), "lengths must be (B,) or (B, Q), but their shape is (2, 3, 4)"),
        (torch.tensor([2, -1]), "lengths must be from 0 to num_keys=6, but one is -1"),
        (torch.tensor([[2, 7]]), "lengths must be from 0 to num_keys=6, but one is 7"),
        (torch.tensor([2.0, 3.0]), "lengths must be whole numbers, but are torch.float32"),
        (torch.tensor([True, False]), "lengths must be whole numbers, but are torch.bool"),
    ],
    ids=str,
)
def test_impossible_lengths_are_refused(lengths: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        length_mask(lengths, 6)


def test_causal_mask_lets_new_tokens_see_the_past_and_themselves() -> None:
    expected = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    assert torch.equal(causal_mask(3, 2, torch.device("cpu")), expected)
