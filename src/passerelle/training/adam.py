"""AdamW (Loshchilov & Hutter 2019), by torch's function and not its class, which loads torch's compiler: 1.7 s."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

EPSILON = 1e-9
"""As Vaswani et al. 2017, section 5.3."""


@dataclass(frozen=True)
class Adam:
    """The parameters that it moves, and what it remembers of each, by name."""

    parameters: dict[str, nn.Parameter]
    """Float32, with their gradients in `grad`."""
    step: dict[str, Tensor]
    """(), steps done."""
    exp_avg: dict[str, Tensor]
    """Decaying mean of the gradient."""
    exp_avg_sq: dict[str, Tensor]
    """Decaying mean of its square."""


def make_adam(parameters: dict[str, nn.Parameter]) -> Adam:
    """Adam over the given parameters, at rest."""
    values = {name: parameter.detach() for name, parameter in parameters.items()}
    return Adam(
        parameters,
        step={name: torch.zeros((), device=value.device) for name, value in values.items()},
        exp_avg={name: torch.zeros_like(value) for name, value in values.items()},
        exp_avg_sq={name: torch.zeros_like(value) for name, value in values.items()},
    )


@torch.no_grad()
def adam_step(
    adam: Adam, *, rate: float, beta1: float, beta2: float, weight_decay: float, is_skipped: Tensor
) -> None:
    """Move the parameters once by their gradients; weight decay applies to matrices, not to biases and norms.

    is_skipped: (), True to change nothing, to the bit. Nobody waits to learn which.
    """
    matrices = [name for name, parameter in adam.parameters.items() if parameter.dim() > 1]
    vectors = [name for name, parameter in adam.parameters.items() if parameter.dim() <= 1]
    for names, decay in ((matrices, weight_decay), (vectors, 0.0)):
        parameters = [adam.parameters[name] for name in names]
        adamw(
            [parameter.detach() for parameter in parameters],
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            [adam.exp_avg[name] for name in names],
            [adam.exp_avg_sq[name] for name in names],
            [],
            [adam.step[name] for name in names],
            fused=True,
            found_inf=is_skipped.float(),  # as GradScaler tells it
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=rate,
            weight_decay=decay,
            eps=EPSILON,
            maximize=False,
        )
