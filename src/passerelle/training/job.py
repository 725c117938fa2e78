"""What a training worker is given. Imports neither Ray nor torch: it also passes through Ray's controller."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from passerelle.config import TrainParams

if TYPE_CHECKING:
    from passerelle.training.group import Bleu


@dataclass(frozen=True)
class Job:
    """What a worker is given."""

    params: TrainParams
    shards: Path
    vocab_size: int
    run_folder: Path
    threads: int
    exchange_seconds: float
    bleu: "Bleu | None"


def work(job: Job) -> None:
    """Take part in the training until it is finished or stopped; loads torch, in the worker alone."""
    from passerelle.training.ray_worker import train_in_worker

    train_in_worker(job)
