"""Tokens per second of training with 1 worker of 2 threads against 2 workers of 1 thread.

    python benchmarks/workers.py [--shards data/shards/train] [--rounds 4] [--steps 10]

Takes the model and training sections of params.yaml and real shards. The two settings run by turns, each in
processes of its own over gloo, so that a drift of the machine's speed meets both; what counts is the ratio.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.multiprocessing as multiprocessing
from torch import distributed

from passerelle.config import TrainParams
from passerelle.data.pairs import open_shards
from passerelle.identity import identity
from passerelle.models import build_model
from passerelle.params_file import load_params
from passerelle.training.batches import planned_steps, step_batches
from passerelle.training.group import ALONE, Group
from passerelle.training.job import COMPUTING
from passerelle.training.master import copy_to_model, make_master
from passerelle.training.precision import compute_dtype
from passerelle.training.step import train_step

SETTINGS = {"1 worker x 2 threads": (1, 2), "2 workers x 1 thread": (2, 1)}
WARM_UP_STEPS = 3
VOCAB_SIZE = 8000
"""The default tokenizer's."""


def worker(rank: int, num_workers: int, threads: int, shards: str, num_steps: int, folder: str) -> None:
    """Train from the beginning; worker 0 writes tokens per second of the steps after the warm-up."""
    os.environ.update(COMPUTING)
    torch.set_num_threads(threads)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=num_workers
    )
    params, pairs, device = load_params(TrainParams), open_shards(Path(shards)), torch.device("cpu")
    torch.manual_seed(0)
    model = build_model(params.model, VOCAB_SIZE)
    master = make_master(model, params.training)
    model.to(compute_dtype(params.training.precision, device))
    copy_to_model(master, model)
    group = Group(rank, num_workers, distributed.all_reduce if num_workers > 1 else ALONE.reduce)
    steps = planned_steps(pairs, params.training)
    num_tokens, began = 0, 0.0
    for step in range(WARM_UP_STEPS + num_steps):
        if step == WARM_UP_STEPS:
            num_tokens, began = 0, time.perf_counter()
        num_tokens += train_step(
            model,
            master,
            step_batches(pairs, next(steps), device, group),
            step=step,
            rate=1e-4,
            config=params.training,
            group=group,
        ).num_tokens
    if rank == 0:
        (Path(folder) / "rate").write_text(str(num_tokens / (time.perf_counter() - began)))
    distributed.destroy_process_group()


def measure(setting: str, shards: str, num_steps: int) -> float:
    """Tokens per second of one run of the setting."""
    num_workers, threads = SETTINGS[setting]
    with tempfile.TemporaryDirectory() as folder:
        arguments = (num_workers, threads, shards, num_steps, folder)
        multiprocessing.spawn(worker, args=arguments, nprocs=num_workers)
        return float((Path(folder) / "rate").read_text())


def main() -> None:
    """Print machine, rates and ratio as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shards", default="data/shards/train")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    rates: dict[str, list[float]] = {setting: [] for setting in SETTINGS}
    for number in range(arguments.rounds):
        for setting in SETTINGS:
            rates[setting].append(measure(setting, arguments.shards, arguments.steps))
            print(f"round {number + 1}: {setting}: {rates[setting][-1]:,.0f} tokens/s", file=sys.stderr)
    one, two = rates.values()
    ratios = [b / a for a, b in zip(one, two, strict=True)]
    tags = identity(Path(__file__).resolve().parents[1])
    result = {
        "machine": {key: tags[key] for key in tags if key.startswith(("machine.", "version.torch", "git."))},
        "median tokens per second": {setting: statistics.median(rates[setting]) for setting in SETTINGS},
        "ratio, 2 workers to 1": {
            "median": statistics.median(ratios),
            "low": min(ratios),
            "high": max(ratios),
        },
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
