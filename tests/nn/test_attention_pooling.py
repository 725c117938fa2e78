"""Attention pooling against numpy in float64: sums written out, one query and one key at a time."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from passerelle.nn.attention_pooling import (
    KernelRegression,
    all_others,
    average_pooling,
    kernel_pooling,
    train_kernel_regression,
)

Q, K = 5, 7
SHARPNESSES = (0.0, 0.3, 1.0, 4.0)


def points(num_points: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The chapter's: sorted x on [0, 5], y = 2 sin x + x^0.8 + noise of 0.5."""
    generator = np.random.default_rng(seed)
    x = np.sort(generator.uniform(0.0, 5.0, num_points))
    y = 2 * np.sin(x) + x**0.8 + generator.normal(0.0, 0.5, num_points)
    return torch.from_numpy(x), torch.from_numpy(y)


def gaussian(x: float) -> float:
    return math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def nadaraya_watson(query: float, key: NDArray[np.float64], value: NDArray[np.float64], w: float) -> float:
    """sum_i K(u_i) y_i / sum_j K(u_j), u_i = (query - key_i) w."""
    kernels = [gaussian((query - place) * w) for place in key]
    return sum(kernel * known for kernel, known in zip(kernels, value, strict=True)) / sum(kernels)


def loss_of(x: NDArray[np.float64], y: NDArray[np.float64], w: float) -> float:
    """Sum of squared errors when each point is estimated from the others."""
    errors = [nadaraya_watson(x[n], np.delete(x, n), np.delete(y, n), w) - y[n] for n in range(len(x))]
    return float(np.square(errors).sum())


@pytest.mark.parametrize("w", SHARPNESSES)
def test_kernel_pooling_is_the_ratio_of_kernel_sums(w: float) -> None:
    key, value = points(K)
    query = torch.linspace(-1.0, 6.0, Q, dtype=torch.float64)
    estimates, weights = kernel_pooling(query, key, value, w)
    expected = [nadaraya_watson(place, key.numpy(), value.numpy(), w) for place in query.tolist()]
    np.testing.assert_allclose(estimates.numpy(), expected, rtol=1e-12)
    assert weights.shape == (Q, K)
    np.testing.assert_allclose(weights.sum(-1).numpy(), 1.0, rtol=1e-12)
    torch.testing.assert_close(weights @ value, estimates)


def test_average_pooling_is_the_mean_for_any_query() -> None:
    key, value = points(K)
    query = torch.linspace(-1.0, 6.0, Q, dtype=torch.float64)
    estimates, weights = average_pooling(query, key, value)
    np.testing.assert_allclose(estimates.numpy(), [value.numpy().mean()] * Q, rtol=1e-12)
    np.testing.assert_allclose(weights.numpy(), np.full((Q, K), 1 / K), rtol=1e-12)


def test_every_query_may_have_its_own_keys_and_values() -> None:
    pairs = [points(K, seed) for seed in range(Q)]
    key, value = torch.stack([x for x, _ in pairs]), torch.stack([y for _, y in pairs])
    query = torch.linspace(0.0, 5.0, Q, dtype=torch.float64)
    for pooling in (average_pooling, kernel_pooling):
        estimates, weights = pooling(query, key, value)
        for row in range(Q):
            alone, weights_alone = pooling(query[row : row + 1], key[row], value[row])
            torch.testing.assert_close(estimates[row], alone[0])
            torch.testing.assert_close(weights[row], weights_alone[0])


def test_average_pooling_is_the_limit_of_a_small_w() -> None:
    key, value = points(K)
    query = torch.linspace(0.0, 5.0, Q, dtype=torch.float64)
    expected = average_pooling(query, key, value)
    gaps = [(kernel_pooling(query, key, value, w)[0] - expected[0]).abs().max() for w in (1e-1, 1e-2, 1e-3)]
    assert gaps[0] > 50 * gaps[1] > 50 * 50 * gaps[2] > 0  # it closes with the square of w
    torch.testing.assert_close(kernel_pooling(query, key, value, 0.0), expected)


def test_the_nearest_value_is_the_limit_of_a_large_w() -> None:
    key, value = points(K)
    query = torch.linspace(0.0, 5.0, Q, dtype=torch.float64)
    estimates, _ = kernel_pooling(query, key, value, 1e4)
    nearest = [int(np.abs(key.numpy() - place).argmin()) for place in query.tolist()]
    torch.testing.assert_close(estimates, value[nearest])


def test_a_larger_w_gives_sharper_weights() -> None:
    key, value = points(K)
    query = torch.linspace(0.0, 5.0, Q, dtype=torch.float64)
    weights = [kernel_pooling(query, key, value, w)[1] for w in SHARPNESSES]
    entropies = torch.special.entr(torch.stack(weights)).sum(-1)  # (values of w, Q)
    np.testing.assert_allclose(entropies[0].numpy(), math.log(K), rtol=1e-12)
    assert (entropies.diff(dim=0) < 0).all()


def test_kernel_regression_begins_as_the_kernel_without_parameter() -> None:
    x, y = points(K)
    estimates, weights = KernelRegression().double()(x, x, y)
    torch.testing.assert_close((estimates, weights), kernel_pooling(x, x, y))


def test_all_others_leave_out_the_point_itself() -> None:
    expected = [[11.0, 12.0, 13.0], [10.0, 12.0, 13.0], [10.0, 11.0, 13.0], [10.0, 11.0, 12.0]]
    assert all_others(torch.arange(10.0, 14.0)).tolist() == expected


def test_a_lonely_point_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a point must have others .* but there are 1 points"):
        all_others(torch.ones(1))


def test_every_step_is_gradient_descent_on_the_error_at_the_left_out_points() -> None:
    x, y = points(K)
    model, rate = KernelRegression(0.7).double(), 0.05
    found = train_kernel_regression(model, x, y, learning_rate=rate, num_epochs=3)
    w, losses, step = float(np.float32(0.7)), [], 1e-5
    for _ in range(3):
        losses.append(loss_of(x.numpy(), y.numpy(), w))
        above, below = (loss_of(x.numpy(), y.numpy(), w + shift) for shift in (step, -step))
        w -= rate * (above - below) / (2 * step)
    np.testing.assert_allclose(found, losses, rtol=1e-7)
    assert model.w.item() == pytest.approx(w, rel=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_the_loss_falls_over_the_five_epochs_of_the_chapter(seed: int) -> None:
    model = KernelRegression()
    x, y = (values.float() for values in points(50, seed))
    losses = train_kernel_regression(model, x, y, learning_rate=0.5, num_epochs=5)
    assert len(losses) == 5
    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == 5
    assert loss_of(x.double().numpy(), y.double().numpy(), model.w.item()) < losses[-1]
    assert model.w.item() > 1.0  # sharper than the kernel that it began as
