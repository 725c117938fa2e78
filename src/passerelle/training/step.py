"""One optimiser step and one validation, as functions of a model and its batches.

Everything is a sum over target tokens, added up over micro-batches and workers, and divided once by the count of
tokens in the whole step. So neither padding, nor the cut into micro-batches, nor the number of workers changes
what is optimised.
"""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from passerelle.config import TrainingConfig
from passerelle.data.batch import Batch
from passerelle.nn.model import Seq2Seq
from passerelle.training.adam import adam_step
from passerelle.training.group import Group
from passerelle.training.loss import smoothed_cross_entropy
from passerelle.training.master import Master, add_gradient, copy_to_model
from passerelle.training.muon import muon_step


class StepResult:
    """What one optimiser step measured, over all workers; to ask it anything waits for the device, if that is a GPU."""

    def __init__(self, measured: Tensor) -> None:
        """measured (6,): loss, negative log-likelihood, gradient norm, target tokens, whether skipped, stop wishes."""
        self._measured = measured

    @cached_property
    def _values(self) -> list[float]:
        values: list[float] = self._measured.tolist()
        return values

    @property
    def loss(self) -> float:
        """Label-smoothed loss, nats a target token."""
        return self._values[0]

    @property
    def negative_log_likelihood(self) -> float:
        """Nats a target token."""
        return self._values[1]

    @property
    def gradient_norm(self) -> float:
        """Before clipping."""
        return self._values[2]

    @property
    def num_tokens(self) -> int:
        """Real target tokens."""
        return int(self._values[3])

    @property
    def is_skipped(self) -> bool:
        """Whether loss or gradient was not finite; then nothing was moved."""
        return self._values[4] > 0

    @property
    def is_stop_wanted(self) -> bool:
        """Whether any worker asked to stop after this step."""
        return self._values[5] > 0


def batch_sums(model: nn.Module, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
    """Smoothed loss and negative log-likelihood, each summed over the batch's target tokens."""
    seq2seq: Seq2Seq = model  # type: ignore[assignment]
    memory = seq2seq.encode(batch.source, batch.source_lengths)
    hidden, _ = seq2seq.decode_hidden(batch.target_in, memory, seq2seq.start(memory))
    real = hidden.flatten(0, 1).index_select(0, batch.target_positions)  # (N, D)
    return smoothed_cross_entropy(real, seq2seq.output.weight, batch.target_out, smoothing)


def train_step(
    model: nn.Module,
    master: Master,
    batches: Iterable[tuple[int, Batch]],
    *,
    step: int,
    rate: float,
    config: TrainingConfig,
    group: Group,
    wants_stop: bool = False,
) -> StepResult:
    """Move the master weights once, by the gradient of this worker's numbered micro-batches and all others'.

    Dropout masks are keyed by (seed, step, number of the micro-batch), not by worker. Where loss or gradient is not
    finite, in whichever worker, all workers skip the step: weights and optimisers stay as they were, to the bit.
    wants_stop: whether this worker asks to stop; all learn of it with the gradient. A GPU is waited for when the
    result is read.
    """
    model.train()
    master.exchanged.zero_()
    master.sums[3] = float(wants_stop)
    for number, batch in batches:
        torch.manual_seed(dropout_seed(config.seed, step, number))
        loss, nll = batch_sums(model, batch, config.label_smoothing)
        loss.backward()
        add_gradient(master, model)
        master.sums[0] += loss.detach()
        master.sums[1] += nll
        master.sums[2] += batch.num_tokens
    group.reduce(master.exchanged)
    loss_sum, nll_sum, num_tokens, num_stops = master.sums.unbind()
    norm = master.gradient.norm() / num_tokens
    is_skipped = ~torch.stack((norm, loss_sum, nll_sum)).isfinite().all()
    measured = (loss_sum / num_tokens, nll_sum / num_tokens, norm, num_tokens, is_skipped, num_stops)
    result = StepResult(torch.stack([value.float() for value in measured]))
    scale = 1.0 / num_tokens
    if config.clip_norm is not None:
        scale = scale * (config.clip_norm / norm).clamp_max(1.0)
    master.gradient.mul_(scale)
    if (
        master.gradient.is_cuda or is_skipped
    ):  # on a CPU it takes longer than AdamW, and is hardly ever needed
        master.gradient.masked_fill_(is_skipped, 0.0)
    _move(model, master, rate, config, group, is_skipped)
    return result


def _move(
    model: nn.Module, master: Master, rate: float, config: TrainingConfig, group: Group, is_skipped: Tensor
) -> None:
    """Let the optimisers move the master weights by the gradient, and give them to the model."""
    adam_step(
        master.adam,
        rate=rate,
        beta1=config.beta1,
        beta2=config.beta2,
        weight_decay=config.weight_decay,
        is_skipped=is_skipped,
    )
    if master.muon is not None:
        muon_step(
            master.muon,
            rate=rate * config.muon_rate,
            weight_decay=config.weight_decay,
            dtype=next(model.parameters()).dtype,
            group=group,
            is_skipped=is_skipped,
        )
    copy_to_model(master, model)


def validation_loss(model: nn.Module, batches: Iterable[Batch], group: Group, device: torch.device) -> float:
    """Negative log-likelihood in nats a target token, over all workers' batches, without dropout."""
    model.eval()
    sums = torch.zeros(2, dtype=torch.float64, device=device)
    with torch.inference_mode():
        for batch in batches:
            sums[0] += batch_sums(model, batch, 0.0)[1]
            sums[1] += batch.num_tokens
    group.reduce(sums)
    return (sums[0] / sums[1]).item()


def dropout_seed(seed: int, step: int, micro_batch: int) -> int:
    """A 64-bit seed, unrelated for different keys."""
    return int(np.random.SeedSequence((seed, step, micro_batch)).generate_state(1, np.uint64)[0])
