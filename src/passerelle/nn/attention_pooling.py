"""Attention pooling for regression (Nadaraya 1964, Watson 1964): an estimate is a weighted mean of known values.

Shapes: Q queries, K keys. All are single numbers: a query is the place of an estimate, a key the place of a known
value. Average pooling ignores places. Nadaraya-Watson weighs a value by a Gaussian of its distance; made to
sum to one, Gaussians are a softmax of negative squared distances, which is attention.
"""

import torch
from torch import Tensor, nn


def average_pooling(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of the values for any query.

    query (Q,), key and value (K,) or, of each query its own, (Q, K). Returns estimates (Q,), weights (Q, K).
    """
    weights = torch.full_like(query[:, None] - key, 1.0 / key.size(-1))
    return _pool(weights, value)


def kernel_pooling(
    query: Tensor, key: Tensor, value: Tensor, w: Tensor | float = 1.0
) -> tuple[Tensor, Tensor]:
    """Nadaraya-Watson regression with a Gaussian kernel of standard deviation 1 / w.

    query (Q,), key and value (K,) or, of each query its own, (Q, K). Returns estimates (Q,), weights (Q, K).
    With w near 0 this is average pooling, with a large w the value of the nearest key.
    """
    distances = query[:, None] - key  # (Q, K)
    weights = (-(distances * w).square() / 2).softmax(-1)
    return _pool(weights, value)


class KernelRegression(nn.Module):
    """`kernel_pooling` whose w is trained."""

    def __init__(self, w: float = 1.0) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(float(w)))

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """As `kernel_pooling`."""
        return kernel_pooling(query, key, value, self.w)


def train_kernel_regression(
    model: KernelRegression, x: Tensor, y: Tensor, *, learning_rate: float, num_epochs: int
) -> list[float]:
    """Fit w to the points (x, y), each (N,), by gradient descent; return the loss before each epoch's step.

    Every point is estimated from all others. Were it among its own keys, the best weights would be the sharpest:
    all on the point itself. The loss is the sum of squared errors, and an epoch one step on all points.
    """
    keys, values = all_others(x), all_others(y)
    optimiser = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for _ in range(num_epochs):
        estimates, _ = model(x, keys, values)
        loss = (estimates - y).square().sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def all_others(x: Tensor) -> Tensor:
    """(N,) -> (N, N - 1): row n is x without its element n. Raises ValueError where there are no others."""
    num_points = x.size(0)
    if num_points < 2:
        raise ValueError(f"a point must have others to be estimated from, but there are {num_points} points")
    is_other = ~torch.eye(num_points, dtype=torch.bool, device=x.device)
    return x.expand(num_points, num_points)[is_other].view(num_points, num_points - 1)


def _pool(weights: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    return (weights * value).sum(-1), weights
