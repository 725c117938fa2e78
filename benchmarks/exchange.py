"""What data parallelism costs on one machine: gloo's all-reduce over loopback, and where a step's time goes.

    python benchmarks/exchange.py [--output benchmarks/results/exchange.json] [--only all_reduce overlap "192 wide"]

All-reduce: 2, 3 and 4 processes of one thread, 1 KB to 256 MB, means over calls one behind the other.
Steps, all of one thread and by turns: 1 worker; the share of one of very many workers, without any exchange; 2
processes at once that know nothing of each other; 2 workers. Overlap: one micro-batch's forward and backward pass and
an all-reduce of the default model's gradient by 2 workers, one after the other and at once. Rounds in which
something else took a core are left out; where a share of a core is well below 1, all were such.
Takes params.yaml and real shards; what `scaling_model.py` predicts from. --only renews parts of an existing output.
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as multiprocessing
from scaling_model import MODELS
from torch import Tensor, distributed, nn

from passerelle.config import TrainParams
from passerelle.data.pairs import SentencePairs, open_shards
from passerelle.identity import identity
from passerelle.models import build_model
from passerelle.params_file import load_params
from passerelle.training.batches import planned_steps, step_batches
from passerelle.training.group import Group
from passerelle.training.job import COMPUTING
from passerelle.training.master import Master, copy_to_model, make_master
from passerelle.training.precision import compute_dtype
from passerelle.training.step import batch_sums, train_step

ROOT = Path(__file__).resolve().parents[1]
SIZES = [4**power * 1024 for power in range(10)]  # 1 KB to 256 MB
MANY = 10_000
"""Workers, of which rank 0 has one micro-batch and one matrix of Muon to itself."""
CPU = torch.device("cpu")


def in_processes(num_workers: int, part: Callable[..., Any], *arguments: Any) -> Any:
    """What part(rank, num_workers, *arguments) gives on rank 0, in processes of one thread joined by gloo."""
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(_process, (num_workers, folder, part, arguments), nprocs=num_workers)
        return json.loads((Path(folder) / "result").read_text())


def _process(
    rank: int, num_workers: int, folder: str, part: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    os.environ.update(COMPUTING)
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=num_workers
    )
    result = part(rank, num_workers, *arguments)
    if rank == 0:
        (Path(folder) / "result").write_text(json.dumps(result))
    distributed.barrier()
    distributed.destroy_process_group()


def all_reduce_seconds(rank: int, num_workers: int) -> list[float]:
    """Of one all-reduce of each size: the median over rounds of the mean over calls."""
    seconds = []
    for size in SIZES:
        tensor, num_calls = torch.zeros(size // 4), max(1, min(200, 2**22 // size))
        times = []
        for _ in range(6):
            distributed.barrier()
            began = time.perf_counter()
            for _ in range(num_calls):
                distributed.all_reduce(tensor)
            times.append((time.perf_counter() - began) / num_calls)
        seconds.append(statistics.median(times[1:]))
    return seconds


def training(name: str, shards: str) -> tuple[TrainParams, nn.Module, Master, SentencePairs]:
    """Model and optimisers before the first step, with the parameters of params.yaml but for the model's size."""
    params, (sizes, vocab_size) = load_params(TrainParams), MODELS[name]
    torch.manual_seed(0)
    model = build_model(params.model.model_copy(update=sizes), vocab_size)
    master = make_master(model, params.training)
    model.to(compute_dtype(params.training.precision, CPU))
    copy_to_model(master, model)
    return params, model, master, open_shards(Path(shards))


def step_parts(
    rank: int, num_workers: int, name: str, shards: str, num_steps: int, as_if: int
) -> dict[str, float]:
    """Mean seconds of the parts of a step; where as_if is not 0, of a share of so many workers, without exchange."""
    params, model, master, pairs = training(name, shards)
    marks: list[float] = []
    busy: list[
        float
    ] = []  # the thread's time on a core at the beginning of a step, and after its micro-batches

    def reduce(tensor: Tensor) -> None:
        if len(marks) == 1:
            busy.append(time.thread_time())
        marks.append(time.perf_counter())
        if not as_if:
            distributed.barrier()
            marks.append(time.perf_counter())
            distributed.all_reduce(tensor)
        else:
            marks.append(marks[-1])
        marks.append(time.perf_counter())

    group = Group(0, as_if, reduce) if as_if else Group(rank, num_workers, reduce)
    steps = planned_steps(pairs, params.training)
    intervals, num_tokens = [], 0
    for number in range(2 + num_steps):
        batches = step_batches(pairs, next(steps), CPU, group)
        marks[:] = [time.perf_counter()]
        busy.append(time.thread_time())
        result = train_step(
            model, master, batches, step=number, rate=1e-4, config=params.training, group=group
        )
        marks.append(time.perf_counter())
        if number >= 2:
            intervals.append([end - begin for begin, end in pairwise(marks)])
            num_tokens += result.num_tokens
    means = [statistics.fmean(column) for column in zip(*intervals, strict=True)]
    return {
        "compute": means[0],  # the worker's micro-batches
        "wait": sum(means[1::3]),  # for the slower worker
        "exchange": sum(means[2::3]),
        "rest": sum(means[3::3]),  # norm, optimisers, copy to the model
        "step": sum(means),
        "tokens per step": num_tokens / num_steps,
        "share of a core while computing": (sum(busy[5::2]) - sum(busy[4::2])) / (num_steps * means[0]),
    }


def measured_steps(name: str, shards: str, num_steps: int, num_rounds: int) -> dict[str, Any]:
    """Medians over undisturbed rounds of `step_parts`, in all settings; and what the workers exchange."""
    settings = {"1 worker": (1, 1), "one of many": (1, MANY), "2 apart": (2, 1), "2 workers": (2, 0)}
    rounds: dict[str, list[dict[str, float]]] = {setting: [] for setting in settings}
    for _ in range(num_rounds):
        for setting, (num_workers, as_if) in settings.items():
            rounds[setting].append(in_processes(num_workers, step_parts, name, shards, num_steps, as_if))
            print(f"{name}: {setting}: {rounds[setting][-1]}", file=sys.stderr)
    _, _, master, _ = training(name, shards)
    return {
        "parameters": master.gradient.numel(),
        "gradient bytes": 4 * master.exchanged.numel(),
        "direction bytes": 0 if master.muon is None else 4 * master.muon.directions.numel(),
        "micro-batches per step": load_params(TrainParams).training.micro_batches_per_step,
        "seconds": {
            setting: {part: statistics.median(one[part] for one in quiet) for part in quiet[0]}
            for setting, quiet in (
                (setting, undisturbed(of_setting)) for setting, of_setting in rounds.items()
            )
        },
    }


def undisturbed(rounds: list[dict[str, float]]) -> list[dict[str, float]]:
    """The rounds in which nothing else took the core, or the one in which it took least."""
    shares = [one["share of a core while computing"] for one in rounds]
    return [one for one, share in zip(rounds, shares, strict=True) if share >= min(0.97, max(shares))]


def overlap_seconds(rank: int, num_workers: int, name: str, shards: str, num_rounds: int) -> dict[str, float]:
    """Medians of a micro-batch's forward and backward pass, of an all-reduce, of both in turn, and of both at once."""
    params, model, master, pairs = training(name, shards)
    group, buffer = Group(rank, num_workers, lambda tensor: None), torch.zeros_like(master.exchanged)
    batches = [
        next(iter(step_batches(pairs, step, CPU, group)))[1]
        for step in islice(planned_steps(pairs, params.training), num_rounds)
    ]
    times: dict[str, list[float]] = {}
    order = random.Random(0)  # the same on all workers
    for batch in batches:
        for way in order.sample(("compute", "exchange", "in turn", "at once"), 4):
            distributed.barrier()
            began = time.perf_counter()
            exchange = distributed.all_reduce(buffer, async_op=True) if way == "at once" else None
            if way != "exchange":
                batch_sums(model, batch, params.training.label_smoothing)[0].backward()
            if exchange is not None:
                exchange.wait()
            elif way != "compute":
                distributed.all_reduce(buffer)
            distributed.barrier()  # a step ends when all workers have
            times.setdefault(way, []).append(time.perf_counter() - began)
            model.zero_grad()
    return {way: statistics.median(all_times[2:]) for way, all_times in times.items()}


def main() -> None:
    """Measure what is asked for, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shards", default="data/shards/train")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/exchange.json")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parts = ["all_reduce", "overlap", *MODELS]
    parser.add_argument("--only", nargs="+", choices=parts, default=["all_reduce", "overlap", "192 wide"])
    arguments = parser.parse_args()
    tags = identity(ROOT)
    result = json.loads(arguments.output.read_text()) if arguments.output.is_file() else {}
    result["machine"] = {key: tags[key] for key in tags if key.startswith(("machine.", "version.torch"))}
    for part in arguments.only:
        if part == "all_reduce":
            times = {str(number): in_processes(number, all_reduce_seconds) for number in (2, 3, 4)}
            result["all_reduce"] = {"bytes": SIZES, "seconds by processes": times}
        elif part == "overlap":
            result["overlap"] = in_processes(2, overlap_seconds, "192 wide", arguments.shards, 20)
        else:
            steps = measured_steps(part, arguments.shards, arguments.steps, arguments.rounds)
            result.setdefault("steps", {})[part] = steps | {"commit": tags.get("git.commit", "unknown")}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
