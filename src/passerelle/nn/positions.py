"""Sinusoidal positional encoding (Vaswani et al. 2017, section 3.5)."""

import math

import torch
from torch import Tensor, nn


def sinusoidal_encoding(num_positions: int, d_model: int) -> Tensor:
    """P (T, D) in float32: P[t, 2j] = sin(t / 10000^(2j/D)) and P[t, 2j+1] = cos(t / 10000^(2j/D)).

    d_model must be even. Angles are computed in float64.
    """
    positions = torch.arange(num_positions, dtype=torch.float64).unsqueeze(1)
    frequencies = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / d_model))
    angles = positions * frequencies  # (T, D/2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1).float()


class PositionalEncoding(nn.Module):
    """Adds the sinusoidal encoding; its table grows when a sequence is longer than any before."""

    table: Tensor

    def __init__(self, d_model: int, num_positions: int = 256) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table", sinusoidal_encoding(num_positions, d_model), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """x (B, T, D) -> the same plus the encoding of positions start ... start + T - 1."""
        end = start + x.size(1)
        if end > self.table.size(0):
            longer = sinusoidal_encoding(max(end, 2 * self.table.size(0)), self.d_model)
            self.table = longer.to(self.table)
        return x + self.table[start:end]
