"""Master weights: the float32 parameters that the optimiser moves, beside the model that computes.

The model may compute in bfloat16, whose 8 bits would lose small updates and sums over micro-batches; so
parameters and gradients are kept in float32, in one flat vector each. One vector is also what workers exchange.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from passerelle.config import TrainingConfig

NUM_SUMS = 3
"""Numbers exchanged behind the gradient: loss, negative log-likelihood and count of target tokens."""


@dataclass(frozen=True)
class Master:
    """Float32 parameters by name, their gradients (views of one flat vector), and the optimiser."""

    parameters: dict[str, nn.Parameter]
    exchanged: Tensor
    """Flat gradient (P,), then NUM_SUMS sums; workers add theirs up."""
    optimizer: torch.optim.AdamW

    @property
    def gradient(self) -> Tensor:
        """Flat gradient (P,), a view of `exchanged`."""
        return self.exchanged[:-NUM_SUMS]

    @property
    def sums(self) -> Tensor:
        """(NUM_SUMS,), a view of `exchanged`."""
        return self.exchanged[-NUM_SUMS:]


def make_master(model: nn.Module, config: TrainingConfig) -> Master:
    """Float32 copies of the model's parameters, and AdamW over them (Loshchilov & Hutter 2019).

    Weight decay applies to matrices, not to biases and norms. Call before the model changes its precision.
    """
    parameters = {
        name: nn.Parameter(value.detach().float().clone()) for name, value in model.named_parameters()
    }
    size = sum(parameter.numel() for parameter in parameters.values())
    exchanged = torch.zeros(size + NUM_SUMS, device=next(iter(parameters.values())).device)
    gradients = exchanged[:-NUM_SUMS].split([parameter.numel() for parameter in parameters.values()])
    for parameter, gradient in zip(parameters.values(), gradients, strict=True):
        parameter.grad = gradient.view_as(parameter)
    matrices = [parameter for parameter in parameters.values() if parameter.dim() > 1]
    vectors = [parameter for parameter in parameters.values() if parameter.dim() <= 1]
    groups: list[dict[str, Any]] = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(
        groups,
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=1e-9,
        weight_decay=config.weight_decay,
        fused=True,
    )
    return Master(parameters, exchanged, optimizer)


def add_gradient(master: Master, model: nn.Module) -> None:
    """Add the model's gradient to the master's, and clear it in the model."""
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            total = master.parameters[name].grad
            assert total is not None
            total.add_(parameter.grad)
            parameter.grad = None


def copy_to_model(master: Master, model: nn.Module) -> None:
    """Give the model the master's parameters, rounded to the model's precision."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(master.parameters[name])
