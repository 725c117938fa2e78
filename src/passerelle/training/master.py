"""Master weights: the float32 parameters that the optimiser moves, beside the model that computes.

The model may compute in bfloat16, whose 8 bits would lose small updates and sums over micro-batches; so
parameters and gradients are kept in float32, in one flat vector each. One vector is also what workers exchange.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from passerelle.config import TrainingConfig
from passerelle.nn.model import Seq2Seq
from passerelle.training.muon import Muon, make_muon

NUM_SUMS = 4
"""Numbers exchanged behind the gradient: loss, negative log-likelihood, count of target tokens, and count of workers
that ask to stop."""


@dataclass(frozen=True)
class Master:
    """Float32 parameters by name, their gradients (views of one flat vector), and the optimisers."""

    parameters: dict[str, nn.Parameter]
    exchanged: Tensor
    """Flat gradient (P,), then NUM_SUMS sums; workers add theirs up."""
    optimizer: torch.optim.AdamW
    """Of the parameters that Muon does not move."""
    muon: Muon | None

    @property
    def gradient(self) -> Tensor:
        """Flat gradient (P,), a view of `exchanged`."""
        return self.exchanged[:-NUM_SUMS]

    @property
    def sums(self) -> Tensor:
        """(NUM_SUMS,), a view of `exchanged`."""
        return self.exchanged[-NUM_SUMS:]


def make_master(model: nn.Module, config: TrainingConfig) -> Master:
    """Float32 copies of the model's parameters, and their optimisers: AdamW (Loshchilov & Hutter 2019), and Muon.

    Muon, where the configuration asks for it, moves the matrices but for embeddings and output layer. Weight
    decay applies to matrices, not to biases and norms. Call before the model changes its precision.
    """
    parameters = {
        name: nn.Parameter(value.detach().float().clone()) for name, value in model.named_parameters()
    }
    size = sum(parameter.numel() for parameter in parameters.values())
    exchanged = torch.zeros(size + NUM_SUMS, device=next(iter(parameters.values())).device)
    gradients = exchanged[:-NUM_SUMS].split([parameter.numel() for parameter in parameters.values()])
    for parameter, gradient in zip(parameters.values(), gradients, strict=True):
        parameter.grad = gradient.view_as(parameter)
    moved = _inner_matrices(model, parameters) if config.optimizer == "muon" else {}
    others = [parameter for name, parameter in parameters.items() if name not in moved]
    matrices = [parameter for parameter in others if parameter.dim() > 1]
    vectors = [parameter for parameter in others if parameter.dim() <= 1]
    groups: list[dict[str, Any]] = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(
        groups,
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=1e-9,
        weight_decay=config.weight_decay,
        fused=True,
    )
    for parameter in others:  # what Adam itself makes at its first step; so it is in every checkpoint
        optimizer.state[parameter] = {
            "step": torch.zeros((), device=parameter.device),
            "exp_avg": torch.zeros_like(parameter.detach()),
            "exp_avg_sq": torch.zeros_like(parameter.detach()),
        }
    return Master(parameters, exchanged, optimizer, make_muon(moved) if moved else None)


def _inner_matrices(model: nn.Module, parameters: dict[str, nn.Parameter]) -> dict[str, nn.Parameter]:
    """The matrices that map hidden states to hidden states: not the embeddings, nor the output layer."""
    seq2seq: Seq2Seq = model  # type: ignore[assignment]
    outer = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    outer.add(id(seq2seq.output.weight))
    return {
        name: parameters[name]
        for name, value in model.named_parameters()
        if value.dim() == 2 and min(value.shape) > 1 and id(value) not in outer
    }


def master_tensors(master: Master) -> dict[str, Tensor]:
    """All that a checkpoint keeps, not copied: `model.<parameter>` and `optimizer.<what>.<parameter>`."""
    tensors = {f"model.{name}": parameter.detach() for name, parameter in master.parameters.items()}
    for name, parameter in master.parameters.items():
        for what, moment in master.optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{what}.{name}"] = moment
    if master.muon is not None:
        for name, momentum in master.muon.momentum.items():
            tensors[f"optimizer.momentum.{name}"] = momentum
    return tensors


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
