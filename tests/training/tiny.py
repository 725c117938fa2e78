"""A corpus and a model small enough to train in a second."""

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import torch
import torch.multiprocessing as multiprocessing
from torch import Tensor, nn

from passerelle.config import ModelConfig, TrainingConfig
from passerelle.data.batch import Batch
from passerelle.data.pairs import SentencePairs
from passerelle.data.ragged import Ragged, offsets_of
from passerelle.data.special import PAD
from passerelle.models import Model, build_model
from passerelle.training import step
from passerelle.training.checkpoint import checkpoint_step
from passerelle.training.group import ALONE, Group
from passerelle.training.loop import Progress, Report, train

VOCAB_SIZE = 13
Name = Literal["transformer", "bahdanau"]
Sentence = list[int]


def tiny_pairs(num_pairs: int, seed: int) -> SentencePairs:
    """Random sentences whose translation is each token plus one, in two shards."""
    generator = np.random.default_rng(seed)
    shards = []
    for rows in (num_pairs // 3, num_pairs - num_pairs // 3):
        offsets = offsets_of(generator.integers(1, 9, rows))
        shards.append(Ragged(generator.integers(4, VOCAB_SIZE - 1, offsets[-1], dtype=np.uint16), offsets))
    targets = tuple(Ragged(shard.ids + np.uint16(1), shard.offsets) for shard in shards)
    return SentencePairs({}, tuple(shards), targets)


def tiny_model(dropout: float = 0.1, name: Name = "transformer") -> Model:
    """The same initial weights each time."""
    torch.manual_seed(0)
    config = ModelConfig(name=name, d_model=12, num_heads=3, num_layers=1, d_ff=20, dropout=dropout)
    return build_model(config, VOCAB_SIZE)


def tiny_config(**changes: Any) -> TrainingConfig:
    """Six short steps, validated after 3 and 6."""
    settings: dict[str, Any] = {
        "precision": "fp32",
        "micro_batch_tokens": 64,
        "micro_batches_per_step": 3,
        "max_steps": 6,
        "optimizer": "adam",
        "warmup_steps": 2,
        "learning_rate": 0.01,
        "validate_every": 3,
    }
    return TrainingConfig(**(settings | changes))


def run(
    config: TrainingConfig,
    folder: Path,
    *,
    group: Group = ALONE,
    resume_from: Path | None = None,
    dropout: float = 0.1,
    name: Name = "transformer",
    stop_after: int | None = None,
    save: Callable[[int, Callable[[Path], None]], None] | None = None,
) -> tuple[list[Report], list[Progress]]:
    """Train the tiny model; worker 0 keeps each checkpoint as folder/step, or as `save` does.

    stop_after: the step after which this worker asks to stop.
    """
    reports: list[Report] = []
    progress: list[Progress] = []
    steps = count(1 if resume_from is None else checkpoint_step(resume_from) + 1)

    def keep(at: int, write: Callable[[Path], None]) -> None:
        if save is not None:
            save(at, write)
        elif group.rank == 0:
            checkpoint = folder / str(at)
            checkpoint.mkdir(parents=True)
            write(checkpoint)

    def report(report: Report) -> None:
        reports.append(report)
        keep(report.step, report.write)

    train(
        tiny_model(dropout, name),
        tiny_pairs(200, seed=1),
        tiny_pairs(40, seed=2),
        config,
        device=torch.device("cpu"),
        group=group,
        report=report,
        save=keep,
        stop=lambda: next(steps) == stop_after,
        progress=progress.append,
        resume_from=resume_from,
    )
    return reports, progress


def run_processes(worker: Callable[..., None], num_processes: int, *arguments: Any) -> None:
    """worker(rank, *arguments) in processes of their own, forked from one that has loaded torch: that takes seconds."""
    multiprocessing.set_forkserver_preload(["tiny"])
    multiprocessing.start_processes(worker, arguments, num_processes, start_method="forkserver")


def sign(folder: Path) -> None:
    """Have a checkpoint's manifest give the right sizes and hashes, whatever its files are now."""
    contents = {name: (folder / name).read_bytes() for name in ("state.safetensors", "facts.json")}
    manifest = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in contents.items()
    }
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@contextmanager
def spoilt_steps(steps: Collection[int]) -> Iterator[None]:
    """In these steps, counted from 1, this process's loss is not a number."""
    now, real_seed, real_sums = 0, step.dropout_seed, step.batch_sums

    def seed_of(seed: int, number: int, micro_batch: int) -> int:
        nonlocal now
        now = number + 1
        return real_seed(seed, number, micro_batch)

    def sums_of(model: nn.Module, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
        loss, nll = real_sums(model, batch, smoothing)
        return loss * (math.nan if model.training and now in steps else 1.0), nll

    with patch.object(step, "dropout_seed", seed_of), patch.object(step, "batch_sums", sums_of):
        yield


@contextmanager
def noted_sentences() -> Iterator[dict[int, list[Sentence]]]:
    """By step, counted from 1: each source and each target, as ids, of which this process computes a training loss."""
    notes: dict[int, list[Sentence]] = {}
    now, real_seed, real_sums = 0, step.dropout_seed, step.batch_sums

    def seed_of(seed: int, number: int, micro_batch: int) -> int:
        nonlocal now
        now = number + 1
        return real_seed(seed, number, micro_batch)

    def sums_of(model: nn.Module, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
        if model.training:
            rows = torch.cat([batch.source, batch.target_in], dim=1).tolist()
            notes.setdefault(now, []).extend([[one for one in row if one != PAD] for row in rows])
        return real_sums(model, batch, smoothing)

    with patch.object(step, "dropout_seed", seed_of), patch.object(step, "batch_sums", sums_of):
        yield notes
