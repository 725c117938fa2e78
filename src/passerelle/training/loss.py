"""Label-smoothed cross-entropy of an output layer, summed over tokens, without holding all logits at once."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

CHUNK_TOKENS = {"cpu": 512, "cuda": 8192}
"""Tokens whose logits are held together: 8 MB in bfloat16 for 8,000 words stay in a CPU's cache; a GPU wants more."""


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Computes gradients in the forward pass, chunk by chunk, so that each chunk's logits are used while hot.

    One pass over a chunk's V columns: the softmax. The gradient of the logits is softmax - (1 - smoothing) * onehot
    - smoothing / V; its last part, the same in every row and column, joins the products as a vector. Gradients of the
    weight are added up by the products themselves: to add them in float32 took 12 % of the loss's time. In bfloat16
    16 chunks leave an error of 0.5 %, where one leaves 0.2 %. All chunks use the same memory, and on a CPU the softmax
    stays where the logits were, as new memory for each took 20 % of the time of 16 chunks.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        vocab_size = weight.size(0)
        weight_sum = weight.sum(0, dtype=torch.float32)  # (D,), as are the next two
        hidden_sum = hidden.sum(0, dtype=torch.float32)
        uniform = (-smoothing / vocab_size * weight_sum).to(weight.dtype)
        nll_sum, label_sum = torch.zeros(2, device=hidden.device)
        hidden_gradient = torch.empty_like(hidden)
        label_free = (-smoothing / vocab_size * hidden_sum).to(weight.dtype)
        weight_gradient = label_free.repeat(vocab_size, 1)
        chunk_size = CHUNK_TOKENS[hidden.device.type]
        room = hidden.new_empty(min(chunk_size, hidden.size(0)), vocab_size)
        for start in range(0, hidden.size(0), chunk_size):
            chunk = hidden[start : start + chunk_size]
            labels = (torch.arange(chunk.size(0), device=chunk.device), target[start : start + chunk_size])
            logits = torch.mm(chunk, weight.t(), out=room[: chunk.size(0)])  # (C, V)
            label_sum += logits[labels].sum(dtype=torch.float32)
            gradient = torch.softmax(logits, -1, out=None if logits.is_cuda else logits)
            of_labels = gradient[labels]
            nll_sum += _nll(of_labels)
            gradient[labels] = of_labels - (1.0 - smoothing)  # scatter_ would copy it all, twice
            torch.addmm(uniform, gradient, weight, out=hidden_gradient[start : start + chunk_size])
            weight_gradient.addmm_(gradient.t(), chunk)
        ctx.save_for_backward(hidden_gradient, weight_gradient)
        ctx.mark_non_differentiable(nll_sum)
        # The sum over all logits needs none of them: that over tokens and words is a product of two sums.
        mean_logit_sum = hidden_sum.dot(weight_sum) / vocab_size
        return nll_sum + smoothing * (label_sum - mean_logit_sum), nll_sum

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden_gradient, weight_gradient = ctx.saved_tensors
        return hidden_gradient * gradient, weight_gradient * gradient, None, None


def _nll(probabilities: Tensor) -> Tensor:
    """Sum of negative logarithms; of a probability that is zero in float32, that of the smallest above it."""
    return -probabilities.float().clamp_min(torch.finfo(torch.float32).tiny).log().sum()


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
    chunk_size = CHUNK_TOKENS[hidden.device.type]
    for chunk, labels in zip(hidden.split(chunk_size), target.split(chunk_size), strict=True):
        logits = functional.linear(chunk, weight).float()
        nll += functional.cross_entropy(logits, labels, reduction="sum")
        loss += functional.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing)
    return loss, nll
