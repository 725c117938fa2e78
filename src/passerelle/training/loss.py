"""Label-smoothed cross-entropy of an output layer, summed over tokens, without holding all logits at once."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

CHUNK_TOKENS = 256
"""Tokens whose logits are held together: 8 MB in float32 for 8,000 words, which stays in a CPU's cache."""


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Computes gradients in the forward pass, chunk by chunk, so that each chunk's logits are used while hot."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        vocab_size = weight.size(0)
        loss = torch.zeros((), device=hidden.device)
        negative_log_likelihood = torch.zeros((), device=hidden.device)
        hidden_gradient = torch.empty_like(hidden)
        weight_gradient = torch.zeros(weight.shape, device=weight.device)
        for start in range(0, hidden.size(0), CHUNK_TOKENS):
            chunk, labels = hidden[start : start + CHUNK_TOKENS], target[start : start + CHUNK_TOKENS, None]
            log_probs = functional.linear(chunk, weight).log_softmax(-1, dtype=torch.float32)  # (C, V)
            nll = -log_probs.gather(1, labels).sum()
            negative_log_likelihood += nll
            loss += (1.0 - smoothing) * nll - smoothing / vocab_size * log_probs.sum()
            gradient = log_probs.exp_().sub_(smoothing / vocab_size)
            gradient.scatter_add_(1, labels, gradient.new_full(labels.shape, smoothing - 1.0))
            gradient = gradient.to(weight.dtype)
            torch.mm(gradient, weight, out=hidden_gradient[start : start + CHUNK_TOKENS])
            weight_gradient += gradient.t() @ chunk
        ctx.save_for_backward(hidden_gradient, weight_gradient.to(weight.dtype))
        ctx.mark_non_differentiable(negative_log_likelihood)
        return loss, negative_log_likelihood

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden_gradient, weight_gradient = ctx.saved_tensors
        return hidden_gradient * gradient, weight_gradient * gradient, None, None


def smoothed_cross_entropy(
    hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Loss and negative log-likelihood of target (N,) under logits = hidden (N, D) @ weight (V, D) transposed.

    Both are sums over the N tokens, in nats, float32. The loss has label smoothing (Szegedy et al. 2016,
    section 7): target probability 1 - smoothing + smoothing / V for the label, smoothing / V for every other.
    """
    if not torch.is_grad_enabled():
        return _sums(hidden, weight, target, smoothing)
    loss, nll = _SmoothedCrossEntropy.apply(hidden, weight, target, smoothing)  # type: ignore[no-untyped-call]
    return loss, nll


def _sums(hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The same sums where no gradient is wanted."""
    loss = torch.zeros((), device=hidden.device)
    nll = torch.zeros((), device=hidden.device)
    for chunk, labels in zip(hidden.split(CHUNK_TOKENS), target.split(CHUNK_TOKENS), strict=True):
        logits = functional.linear(chunk, weight).float()
        nll += functional.cross_entropy(logits, labels, reduction="sum")
        loss += functional.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing)
    return loss, nll
