"""The feed-forward layers as one function against the textbook's formula in float64."""

import pytest
import torch

from passerelle.nn import feed_forward
from passerelle.nn.feed_forward import FeedForward


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2)], ids=["float32", "bfloat16"]
)
@pytest.mark.parametrize("is_one_function", [True, False])
def test_values_and_gradients_are_those_of_the_formula(
    dtype: torch.dtype, tolerance: float, is_one_function: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_one_function:
        monkeypatch.setattr(feed_forward, "_is_one_function", lambda x: False)
    torch.manual_seed(0)
    layers = FeedForward(24, 96).to(dtype)
    x, gradient = torch.randn(5, 7, 24).to(dtype).requires_grad_(), torch.randn(5, 7, 24).to(dtype)
    found = layers(x)
    found.backward(gradient)
    x64 = x.detach().double().requires_grad_()
    weights = [parameter.detach().double().requires_grad_() for parameter in layers.parameters()]
    inner, inner_bias, outer, outer_bias = weights
    expected = (x64 @ inner.t() + inner_bias).clamp_min(0.0) @ outer.t() + outer_bias
    expected.backward(gradient.double())
    pairs = [(found, expected), (x.grad, x64.grad)]
    pairs += [(own.grad, exact.grad) for own, exact in zip(layers.parameters(), weights, strict=True)]
    for own, exact in pairs:
        assert own.shape == exact.shape
        assert (own.double() - exact).norm() < tolerance * exact.norm()


def test_without_gradient_the_values_are_the_same() -> None:
    torch.manual_seed(0)
    layers, x = FeedForward(24, 96).bfloat16(), torch.randn(5, 7, 24).bfloat16()
    with torch.no_grad():
        without = layers(x)
    torch.testing.assert_close(layers(x), without, rtol=2**-7, atol=2**-7)
