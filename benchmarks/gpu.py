"""The training step on a GPU: is it right, how fast, how near to the machine, beside Hugging Face's Marian.

    pip install -e '.[bench]' && python benchmarks/gpu.py [--shards data/shards/train] [--output results.json]
    python benchmarks/gpu.py --device cpu --small     # the same in seconds, to see that it runs

A Transformer of base size (512 wide, 8 heads, 6 + 6 layers, FFN 2,048) with 8,000 and 32,000 words, micro-batches of
4k to 64k padded tokens, one a step, taken through the project's own plan, loader and step; Marian, of the same
sizes, with bfloat16 autocast, scaled_dot_product_attention and fused AdamW, on the same batches. Compiled: each
encoder and decoder layer, with dynamic shapes; its first pass over the batches, less a later one, is the time to
compile. Systems run by turns; medians over rounds. Without --shards, sentences are random, of about 25 tokens. First,
loss and gradient of a batch are compared with float64 on the CPU; where they are wrong, nothing is measured.
Where there are two GPUs, two workers over NCCL are measured too (with --device cpu: over gloo).
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as multiprocessing
from gpu_checks import correctness, host_waits, matmul_flops, seconds
from gpu_systems import SYSTEMS, Sizes, host_batches, random_pairs, useful_flops
from torch import distributed

from passerelle.config import ModelConfig
from passerelle.data.pairs import SentencePairs, open_shards
from passerelle.identity import identity
from passerelle.training.group import ALONE, Group

ROOT = Path(__file__).resolve().parents[1]
BASE = ModelConfig(d_model=512, num_heads=8, num_layers=6, d_ff=2048, dropout=0.1)
SMALL = ModelConfig(d_model=32, num_heads=2, num_layers=1, d_ff=64, dropout=0.1)
VOCAB_SIZES = (8_000, 32_000)
MICRO_BATCHES, SMALL_MICRO_BATCHES = (4_096, 16_384, 32_768, 65_536), (256, 512)


def warmed_up(
    name: str, sizes: Sizes, pairs: SentencePairs, device: torch.device
) -> tuple[Callable[[], object], dict[str, Any]]:
    """A function that takes all steps, having taken them twice, and what was seen meanwhile."""
    is_cuda = device.type == "cuda"
    if is_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    run = SYSTEMS[name](sizes, pairs, device, ALONE)
    first = seconds(run, device)
    facts: dict[str, Any] = {"first pass, seconds more": max(0.0, first - seconds(run, device))}
    if is_cuda:
        facts["peak memory, GB"] = (torch.cuda.max_memory_allocated() - before) / 1e9
        facts["host waits a step"] = {
            place: times / sizes.num_steps for place, times in host_waits(run).items()
        }
    return run, facts


def measured(
    sizes: Sizes, names: Sequence[str], pairs: SentencePairs, num_rounds: int, device: torch.device
) -> dict[str, Any]:
    """Of each system: tokens a second, useful operations a second, and what `warmed_up` saw; by turns."""
    steps = sizes.steps(pairs)
    batches = host_batches(pairs, steps)
    num_tokens = sum(batch.num_tokens for batch in batches)
    flops = sum(useful_flops(sizes, batch) for batch in batches)
    result: dict[str, Any] = {}
    runs: dict[str, Callable[[], object]] = {}
    for name in names:
        try:
            runs[name], result[name] = warmed_up(name, sizes, pairs, device)
        except torch.OutOfMemoryError:
            result[name] = {"out of memory": True}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(num_rounds):
        for name, run in runs.items():
            times[name].append(seconds(run, device))
    for name, all_times in times.items():
        result[name]["target tokens a second"] = num_tokens / statistics.median(all_times)
        result[name]["useful FLOP/s"] = flops / statistics.median(all_times)
    if {"ours", "Marian"} <= times.keys():
        ratios = [b / a for a, b in zip(times["ours"], times["Marian"], strict=True)]
        result["ours to Marian"] = statistics.median(ratios)
    loading = seconds(partial(host_batches, pairs, steps), torch.device("cpu"))
    result["host, ms to make a batch"] = 1000 * loading / len(batches)
    return result


def workers_seconds(num_workers: int, sizes: Sizes, shards: str | None, device_type: str) -> float:
    """Of all steps by so many workers, each with a device, after a pass to warm up."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = (num_workers, sizes, shards, device_type, folder)
        multiprocessing.spawn(_worker, arguments, nprocs=num_workers)
        return float((Path(folder) / "seconds").read_text())


def _worker(
    rank: int, num_workers: int, sizes: Sizes, shards: str | None, device_type: str, folder: str
) -> None:
    device = torch.device(device_type, rank) if device_type == "cuda" else torch.device(device_type)
    if device_type == "cuda":
        torch.cuda.set_device(device)
    backend = "nccl" if device_type == "cuda" else "gloo"
    meeting = f"file://{folder}/meeting"
    distributed.init_process_group(backend, init_method=meeting, rank=rank, world_size=num_workers)
    reduce = distributed.all_reduce if num_workers > 1 else ALONE.reduce
    run = SYSTEMS["ours"](sizes, _pairs(shards, sizes), device, Group(rank, num_workers, reduce))
    run()
    elapsed = seconds(run, device)
    if rank == 0:
        (Path(folder) / "seconds").write_text(str(elapsed))
    distributed.destroy_process_group()


def two_workers(sizes: Sizes, shards: str | None, num_rounds: int, device_type: str) -> float:
    """Median over rounds of the rate of 2 workers to that of 1, on the same steps of two micro-batches."""
    sizes = sizes.with_micro_batches(2)
    times = [
        [workers_seconds(number, sizes, shards, device_type) for number in (1, 2)] for _ in range(num_rounds)
    ]
    return statistics.median(one / two for one, two in times)


def measurements(device: torch.device, is_small: bool, shards: str | None, num_rounds: int) -> dict[str, Any]:
    """All that the script prints, with the machine; correctness alone where something is wrong."""
    config = SMALL if is_small else BASE
    result: dict[str, Any] = {"machine": _machine(device)}
    sizes = Sizes(config, 500 if is_small and not shards else 8000, 512, 1)
    pairs = _pairs(shards, sizes)
    [batch] = host_batches(pairs, sizes.steps(pairs))
    result["correctness"] = correctness(config, sizes.vocab_size, batch, device)
    if not all(one["is right"] for one in result["correctness"].values()):
        return result
    ceiling = matmul_flops(device, 256 if is_small else 8192)
    result["matrix product, FLOP/s"] = ceiling
    names = [name for name in SYSTEMS if is_possible(name, is_small)]
    for vocab_size in [sizes.vocab_size] if is_small else VOCAB_SIZES:
        for tokens in SMALL_MICRO_BATCHES if is_small else MICRO_BATCHES:
            sizes = Sizes(config, vocab_size, tokens, 2 if is_small else 10)
            systems = measured(sizes, names, _pairs(shards, sizes), num_rounds, device)
            for name in systems.keys() & SYSTEMS:
                if rate := systems[name].get("useful FLOP/s"):
                    systems[name]["useful share of the matrix product's"] = rate / ceiling
            result[f"{vocab_size} words, {tokens} tokens a micro-batch"] = systems
    if device.type == "cpu" or torch.cuda.device_count() > 1:
        result["2 workers to 1"] = two_workers(sizes, shards, 1 if is_small else num_rounds, device.type)
    return result


def is_possible(name: str, is_small: bool) -> bool:
    """Marian needs transformers; to compile takes longer than all else of the small form."""
    has_marian = find_spec("transformers") is not None
    return (has_marian or "Marian" not in name) and not (is_small and "compiled" in name)


def _pairs(shards: str | None, sizes: Sizes) -> SentencePairs:
    return open_shards(Path(shards)) if shards else random_pairs(sizes.vocab_size)


def _machine(device: torch.device) -> dict[str, Any]:
    tags = identity(ROOT)
    machine: dict[str, Any] = {
        key: tags[key] for key in tags if key.startswith(("machine.", "version.torch", "git."))
    }
    if device.type == "cuda":
        machine |= {"gpu": torch.cuda.get_device_name(), "gpus": torch.cuda.device_count()}
        machine |= {"cuda": torch.version.cuda, "gpu memory, GB": torch.cuda.mem_get_info()[1] / 1e9}
    return machine


def main() -> None:
    """Check, measure, and print the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--small", action="store_true", help="a tiny model on a few steps")
    parser.add_argument("--shards", help="a folder of shards; random sentences without")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.error("no GPU is at hand; --device cpu --small only shows that the script runs")
    result = measurements(device, arguments.small, arguments.shards, arguments.rounds)
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.output:
        arguments.output.write_text(text + "\n", encoding="utf-8")
    if not all(one["is right"] for one in result["correctness"].values()):
        sys.exit("error: loss or gradient is wrong on this device, so nothing was measured")


if __name__ == "__main__":
    main()
