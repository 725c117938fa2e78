"""The chunked loss against torch's own on all logits at once, in float64."""

import pytest
import torch
from torch.nn import functional

from passerelle.training import loss as loss_module
from passerelle.training.loss import smoothed_cross_entropy

N, D, V = 11, 6, 17


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [3, 100])
def test_loss_and_gradients_equal_torch(
    smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(loss_module.CHUNK_TOKENS, "cpu", chunk)
    torch.manual_seed(0)
    hidden, weight = torch.randn(N, D, requires_grad=True), torch.randn(V, D, requires_grad=True)
    target = torch.randint(V, (N,))
    loss, nll = smoothed_cross_entropy(hidden, weight, target, smoothing)
    (3.0 * loss).backward()
    hidden64, weight64 = (x.detach().double().requires_grad_() for x in (hidden, weight))
    logits = hidden64 @ weight64.t()
    expected = functional.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)
    (3.0 * expected).backward()
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(
        nll.double(), functional.cross_entropy(logits, target, reduction="sum"), rtol=1e-6, atol=0
    )
    torch.testing.assert_close(hidden.grad, hidden64.grad.float())
    torch.testing.assert_close(weight.grad, weight64.grad.float())


def test_bf16_loss_is_within_bf16_of_the_exact_one() -> None:
    torch.manual_seed(0)
    hidden, weight = (
        torch.randn(N, D).bfloat16().requires_grad_(),
        torch.randn(V, D).bfloat16().requires_grad_(),
    )
    target = torch.randint(V, (N,))
    loss, _ = smoothed_cross_entropy(hidden, weight, target, 0.1)
    loss.backward()
    hidden64 = hidden.detach().double().requires_grad_()
    logits = hidden64 @ weight.detach().double().t()
    expected = functional.cross_entropy(logits, target, reduction="sum", label_smoothing=0.1)
    expected.backward()
    torch.testing.assert_close(loss.double(), expected, rtol=1e-2, atol=0)
    torch.testing.assert_close(hidden.grad.double(), hidden64.grad, rtol=2e-2, atol=2e-2)


def test_sixteen_chunks_leave_the_bf16_gradient_of_the_weight_exact_to_a_hundredth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(loss_module.CHUNK_TOKENS, "cpu", 20)
    torch.manual_seed(0)
    hidden, target = torch.randn(320, 16).bfloat16(), torch.randint(50, (320,))
    weight = (torch.randn(50, 16) / 4).bfloat16().requires_grad_()
    smoothed_cross_entropy(hidden, weight, target, 0.1)[0].backward()
    weight64 = weight.detach().double().requires_grad_()
    functional.cross_entropy(
        hidden.double() @ weight64.t(), target, reduction="sum", label_smoothing=0.1
    ).backward()
    error = (weight.grad.double() - weight64.grad).norm() / weight64.grad.norm()
    assert error < 0.01, float(error)


def test_the_sums_without_gradient_are_the_same() -> None:
    torch.manual_seed(0)
    hidden, weight, target = torch.randn(N, D), torch.randn(V, D, requires_grad=True), torch.randint(V, (N,))
    with_gradient = smoothed_cross_entropy(hidden, weight, target, 0.1)
    with torch.no_grad():
        without = smoothed_cross_entropy(hidden, weight, target, 0.1)
    torch.testing.assert_close(torch.stack(without), torch.stack(with_gradient).detach())
