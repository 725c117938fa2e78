"""Dropout whose masks are cheap to draw on a CPU.

torch's own draws one Bernoulli variable a value. Here four values share one 64-bit random integer, in half the
time (benchmarks/README.md); the rate is exact to 2^-16.
On a GPU torch's own is used.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

LEVELS = 1 << 16


class Dropout(nn.Module):
    """In training, sets values to zero with probability `rate` and scales the others up; else the identity.

    Masks come from torch's global generator of the device.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"dropout must be at least 0 and below 1, but is {rate}")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """(...) -> (...)."""
        if not self.training or self.rate == 0.0:
            return x
        if x.device.type != "cpu":
            return functional.dropout(x, self.rate)
        return x * keep_mask(x.shape, self.rate, x.dtype)


def keep_mask(shape: torch.Size, rate: float, dtype: torch.dtype) -> Tensor:
    """A mask of `shape`: 0 with probability `rate`, else the factor that keeps the expectation at 1."""
    num_kept = round((1.0 - rate) * LEVELS)
    bits = torch.empty((shape.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    levels = bits.view(torch.int16)[: shape.numel()].view(shape)
    return (levels < num_kept - LEVELS // 2).to(dtype).mul_(LEVELS / num_kept)
