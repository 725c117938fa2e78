"""Softmax of short rows against torch's, values and gradients."""

import pytest
import torch

from passerelle.nn import short_softmax
from passerelle.nn.short_softmax import MOST_SHORT, softmax


@pytest.mark.parametrize("num_keys", [1, 2, 12, MOST_SHORT, MOST_SHORT + 1])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6), (torch.bfloat16, 1e-2)], ids=str
)
def test_values_and_gradients_equal_torch(num_keys: int, dtype: torch.dtype, tolerance: float) -> None:
    torch.manual_seed(0)
    scores = (5.0 * torch.randn(3, 2, 7, num_keys, dtype=torch.float64)).to(dtype)
    scores[0, 0, 0, 0] = 300.0  # whose exponential float32 could not hold
    wanted = torch.randn(scores.shape, dtype=torch.float64)
    ours, exact = scores.clone().requires_grad_(), scores.double().requires_grad_()
    weights, expected = softmax(ours), exact.softmax(-1)
    assert weights.dtype == dtype
    torch.testing.assert_close(weights.double(), expected, atol=tolerance, rtol=0)
    (weights * wanted.to(dtype)).sum().backward()
    (expected * wanted).sum().backward()
    assert ours.grad is not None
    assert exact.grad is not None
    torch.testing.assert_close(ours.grad.double(), exact.grad, atol=3 * tolerance, rtol=0)


def test_a_key_that_may_not_be_attended_has_no_weight_and_no_gradient() -> None:
    scores = torch.tensor([[1.0, -torch.inf, 2.0]], requires_grad=True)
    softmax(scores).square().sum().backward()
    assert softmax(scores)[0, 1] == 0.0
    assert scores.grad is not None
    assert scores.grad[0, 1] == 0.0
    assert scores.grad.isfinite().all()


def test_short_rows_are_computed_here_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_softmax._ShortSoftmax, "apply", lambda scores: "here")
    assert softmax(torch.zeros(2, MOST_SHORT)) == "here"
    assert isinstance(softmax(torch.zeros(2, MOST_SHORT + 1)), torch.Tensor)
    assert softmax(torch.zeros(2, 0)).shape == (2, 0)
