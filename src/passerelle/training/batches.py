"""Which batches a worker computes: its share of each step's micro-batches, and of the validation set."""

from collections.abc import Iterator
from itertools import islice

import torch

from passerelle.config import TrainingConfig
from passerelle.data.batch import Batch, make_batch
from passerelle.data.pairs import SentencePairs
from passerelle.data.plan import Indices, epoch_micro_batches, training_steps
from passerelle.training.group import Group


def planned_steps(
    pairs: SentencePairs, config: TrainingConfig, *, first_step: int = 0
) -> Iterator[list[Indices]]:
    """The steps of training on `pairs`, without end (`data.plan.training_steps`)."""
    return training_steps(
        pairs.shard_rows,
        pairs.shard_lengths,
        micro_batch_tokens=config.micro_batch_tokens,
        micro_batch_sentences=config.micro_batch_sentences,
        micro_batches_per_step=config.micro_batches_per_step,
        seed=config.seed,
        first_step=first_step,
    )


def step_batches(
    pairs: SentencePairs, micro_batches: list[Indices], device: torch.device, group: Group
) -> Iterator[tuple[int, Batch]]:
    """This worker's share of a step's micro-batches, each with its number in the step."""
    own = list(enumerate(micro_batches))[group.rank :: group.num_workers]
    return ((number, load_batch(pairs, rows, device)) for number, rows in own)


def validation_batches(
    pairs: SentencePairs, config: TrainingConfig, device: torch.device, group: Group
) -> Iterator[Batch]:
    """This worker's share of the validation set."""
    micro_batches = epoch_micro_batches(
        pairs.shard_rows,
        pairs.shard_lengths,
        micro_batch_tokens=config.micro_batch_tokens,
        micro_batch_sentences=config.micro_batch_sentences,
        seed=0,
        epoch=0,
    )
    return (
        load_batch(pairs, rows, device) for rows in islice(micro_batches, group.rank, None, group.num_workers)
    )


def load_batch(pairs: SentencePairs, rows: Indices, device: torch.device) -> Batch:
    """The named rows as one batch on `device`."""
    return make_batch(*pairs.gather(rows)).to(device)
