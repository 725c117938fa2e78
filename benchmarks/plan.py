"""The batch plan of up to 100 million pairs: its speed, memory and resumption, and the padding of its micro-batches.

    python benchmarks/plan.py [--pairs 1000000 10000000 100000000] [--tokens 1024 2048 4096] [--output FILE]

After the stage `shards`. Padding is that of the real corpus, in one epoch. For the larger corpora the lengths of its
pairs are drawn at random, in shards of the size that params.yaml says, and never held together: what counts is the
plan alone. Each size and token budget has a process of its own, so that the memory is of that alone.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from passerelle.config import ShardsParams, TrainParams
from passerelle.data.pairs import open_shards
from passerelle.data.plan import Indices, Lengths, epoch_micro_batches, training_steps
from passerelle.identity import identity
from passerelle.params_file import load_params

ROOT = Path(__file__).resolve().parents[1]


def padding(shards: Path, tokens: int) -> dict[str, float]:
    """Share of padding among the tokens computed in one epoch of the real corpus, end of sentence counted."""
    pairs = open_shards(shards)
    sides = {"source": pairs.source_lengths + 1, "target": pairs.target_lengths + 1}
    computed = dict.fromkeys(sides, 0)
    num_micro_batches = 0
    for rows in epoch_micro_batches(
        pairs.shard_rows, pairs.shard_lengths, micro_batch_tokens=tokens, seed=0, epoch=0
    ):
        num_micro_batches += 1
        for side, lengths in sides.items():
            computed[side] += len(rows) * int(lengths[rows].max())
    real = {side: int(lengths.sum()) for side, lengths in sides.items()}
    shares = {side: 1 - real[side] / computed[side] for side in sides}
    both = 1 - sum(real.values()) / sum(computed.values())
    return {**shares, "both": both, "micro-batches": num_micro_batches}


def synthetic(shards: Path, num_pairs: int, shard_bytes: int) -> tuple[list[int], Callable[[int], Lengths]]:
    """Pairs in each shard of a corpus of so many, and a function that draws the lengths of one shard."""
    pairs = open_shards(shards)
    both = np.stack([pairs.source_lengths, pairs.target_lengths], axis=1) + 1
    rows = int(shard_bytes / (pairs.manifest["bytes"] / len(pairs)))
    shard_rows = [min(rows, num_pairs - first) for first in range(0, num_pairs, rows)]

    def shard_lengths(shard: int) -> Lengths:
        drawn = np.random.default_rng(shard).integers(len(both), size=shard_rows[shard], dtype=np.int32)
        lengths = both[drawn]
        return lengths[:, 0], lengths[:, 1]

    return shard_rows, shard_lengths


def measure(shards: Path, num_pairs: int, tokens: int) -> dict[str, float]:
    """Speed, memory and resumption of the plan of so many pairs."""
    shard_bytes = load_params(ShardsParams, ROOT / "params.yaml").shards.shard_bytes
    per_step = load_params(TrainParams, ROOT / "params.yaml").training.micro_batches_per_step
    shard_rows, shard_lengths = synthetic(shards, num_pairs, shard_bytes)
    before = peak_megabytes()

    def plan(first_step: int = 0) -> Iterator[list[Indices]]:
        return training_steps(
            shard_rows,
            shard_lengths,
            micro_batch_tokens=tokens,
            micro_batches_per_step=per_step,
            seed=0,
            first_step=first_step,
        )

    began = time.perf_counter()
    for shard in range(len(shard_rows)):
        shard_lengths(shard)
    drawing = time.perf_counter() - began
    seen = num_steps = 0
    began = time.perf_counter()
    for step in plan():
        num_steps += 1
        seen += sum(map(len, step))
        if num_steps == 1:
            first_step = time.perf_counter() - began
        if seen >= num_pairs:
            break
    epoch = time.perf_counter() - began
    peak = peak_megabytes()
    return {
        "shards": len(shard_rows),
        "steps an epoch": num_steps,
        "pairs/s": num_pairs / epoch,
        "seconds an epoch": epoch,
        "of these, drawing lengths": drawing,
        "seconds to the first step": first_step,
        "peak MB": peak,
        "of these, before the plan": before,
        "seconds to resume at 0.5 epochs": seconds_to_first(plan(num_steps // 2)),
        "seconds to resume at 2.5 epochs": seconds_to_first(plan(num_steps * 5 // 2)),
    }


def seconds_to_first(steps: Iterator[list[Indices]]) -> float:
    began = time.perf_counter()
    list(islice(steps, 1))
    return time.perf_counter() - began


def peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown."""
    lines = ["| " + " | ".join(rows[0]) + " |", "| --- " * len(rows[0]) + "|"]
    for row in rows:
        cells = [f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" for value in row.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables; write them with the machine as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shards", type=Path, default=ROOT / "data/shards/train")
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 10_000_000, 100_000_000])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 2048, 4096])
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/plan.json")
    arguments = parser.parse_args()
    paddings = [{"tokens": tokens, **padding(arguments.shards, tokens)} for tokens in arguments.tokens]
    print(f"Padding of the real corpus\n{table(paddings)}\n", flush=True)
    plans = []
    for num_pairs in arguments.pairs:
        for tokens in arguments.tokens:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                measures = pool.apply(measure, (arguments.shards, num_pairs, tokens))
            plans.append({"pairs": num_pairs, "tokens": tokens, **measures})
            print(plans[-1], file=sys.stderr)
    print(f"Plans of larger corpora\n{table(plans)}")
    tags = identity(ROOT)
    result = {
        "machine": {key: tags[key] for key in tags if key.startswith(("machine.", "git."))},
        "padding of the real corpus": paddings,
        "plans of larger corpora": plans,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
