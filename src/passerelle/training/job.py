"""What a training worker is given. Imports neither Ray nor torch: it also passes through Ray's controller."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from passerelle.config import TrainParams

if TYPE_CHECKING:
    from passerelle.training.group import Bleu


COMPUTING = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "4096"}
"""Environment of a process that trains, unless it is set otherwise.

A CPU's matrix products are made ready for each shape, about 1 ms each, and batches of fra-eng have 308 shapes, which
need 3,900 of them: oneDNN keeps 1,024. To keep all gave 7 % more tokens a second; with AMX a worker of the default
model takes 3.2 GB of memory for it, and 1.9 where it keeps 1,024.
"""


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
    for name, value in COMPUTING.items():
        os.environ.setdefault(name, value)
    from passerelle.training.ray_worker import train_in_worker

    train_in_worker(job)
