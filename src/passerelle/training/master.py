"""Master weights: the float32 parameters that the optimiser moves, beside the model that computes.

The model may compute in bfloat16, whose 8 bits would lose small updates and sums over micro-batches; so
parameters and gradients are kept in float32, in one flat vector each. One vector is also what workers exchange.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from passerelle.config import TrainingConfig
from passerelle.nn.model import Seq2Seq
from passerelle.training.adam import Adam, make_adam
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
    adam: Adam
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
    """Float32 copies of the model's parameters, and their optimisers: AdamW and Muon.

    Muon, where the configuration asks for it, moves the matrices but for embeddings and output layer. Call before
    the model changes its precision.
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
    others = {name: parameter for name, parameter in parameters.items() if name not in moved}
    return Master(parameters, exchanged, make_adam(others), make_muon(moved) if moved else None)


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
    adam = master.adam
    remembered = {"step": adam.step, "exp_avg": adam.exp_avg, "exp_avg_sq": adam.exp_avg_sq}
    if master.muon is not None:
        remembered["momentum"] = master.muon.momentum
    for what, values in remembered.items():
        tensors |= {f"optimizer.{what}.{name}": value for name, value in values.items()}
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
