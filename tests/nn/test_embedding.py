"""The embedding's gradient against a sum in float64, where torch's own in bfloat16 stops growing."""

import pytest
import torch

from passerelle.nn.embedding import Embedding


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_is_the_exact_sum_rounded_once(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    embedding = Embedding(7, 3).to(dtype)
    tokens = torch.randint(1, 5, (40, 25))  # rows 0, 5 and 6 are of no token
    gradient = torch.randn(40, 25, 3).to(dtype)
    looked_up = embedding(tokens)
    assert torch.equal(looked_up, embedding.weight[tokens])
    looked_up.backward(gradient)
    exact = torch.zeros(7, 3, dtype=torch.float64).index_add_(
        0, tokens.flatten(), gradient.flatten(0, 1).double()
    )
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 2**-8, "atol": 0.0}
    torch.testing.assert_close(embedding.weight.grad.double(), exact, **tolerance)


def test_a_thousand_ones_are_a_thousand_in_bfloat16() -> None:
    embedding = Embedding(2, 1).bfloat16()
    embedding(torch.ones(1000, dtype=torch.long)).sum().backward()
    assert embedding.weight.grad.tolist() == [[0.0], [1000.0]]


def test_a_lookup_without_gradient_is_the_same() -> None:
    embedding = Embedding(5, 2).bfloat16()
    with torch.no_grad():
        found = embedding(torch.tensor([[3, 0]]))
    assert torch.equal(found, embedding.weight[[3, 0]][None])
