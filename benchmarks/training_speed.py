"""Target tokens per second in training: this project against the toolkits that people would take instead.

    python benchmarks/peers/install.py && python benchmarks/training_speed.py [--rounds 2] [--seconds 8] [--probe]

After the stage `shards`. One model for all: 256 wide, 4 heads, 3 + 3 layers, 1,024 in the feed-forward layers, 8,000
joint words with shared embeddings, dropout and label smoothing 0.1. All train on the same sentences with two cores;
tokens are real target tokens, end of sentence counted. Within each round the systems run by turns in random order,
each in processes of its own, with the batch size that was its best (--probe measures all sizes). An optimiser step
has at most 8,192 padded tokens. Peers find batches in memory, made by this project's plan, so with as little padding;
ours reads shards and makes batches within the time measured.
Prints a table, draws docs/images/training_speed.png, and writes benchmarks/results/training_speed.json.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.batch_files import RANDOM, write_batches
from peers.install import PEERS, python_of
from peers.results import draw, machine, shares, summary, table

from passerelle.config import TrainParams
from passerelle.data.pairs import open_shards
from passerelle.params_file import load_params

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "benchmarks/peers"
BATCH_TOKENS = (1024, 2048, 4096, 8192)
"""Padded tokens of an optimiser step on its longer side; ours makes two micro-batches of them."""
LIMIT_SECONDS = 180
"""A system that has not measured by then is broken."""


@dataclass(frozen=True)
class System:
    """A program of benchmarks/peers, its options, and its best batch size: of BATCH_TOKENS, or RANDOM."""

    program: str
    options: str
    batch: int
    environment: str | None = None
    """One of `peers.install`; None is the one that runs this script."""

    @property
    def batch_name(self) -> str:
        """With its unit."""
        return f"{RANDOM} sentences" if self.batch == RANDOM else f"{self.batch:,} tokens"


OURS = {
    "ours, Adam, 1 process × 2 threads": System("train_ours", "--optimizer adam --workers 1", 8192),
    "ours, Adam, 2 processes × 1 thread": System("train_ours", "--optimizer adam --workers 2", 8192),
    "ours, Muon, 1 process × 2 threads": System("train_ours", "--optimizer muon --workers 1", 8192),
    "ours, Muon, 2 processes × 1 thread": System("train_ours", "--optimizer muon --workers 2", 8192),
}
OTHERS = {
    "torch, random batches, float32": System("train_torch", "", RANDOM),
    "torch, float32": System("train_torch", "", 4096),
    "torch, bfloat16": System("train_torch", "--precision bf16", 8192),
    "Hugging Face, float32": System("train_hugging_face", "", 4096, "hugging_face"),
    "Hugging Face, bfloat16": System("train_hugging_face", "--precision bf16", 2048, "hugging_face"),
    "Hugging Face, bfloat16, eager attention": System(
        "train_hugging_face", "--precision bf16 --attention eager", 4096, "hugging_face"
    ),
    "OpenNMT-py, float32": System("train_opennmt_py", "", 2048, "opennmt_py"),
    "Eole, float32": System("train_eole", "", 4096, "eole"),
    "Eole, bfloat16": System("train_eole", "--precision bf16", 8192, "eole"),
    "JoeyNMT, random batches, float32": System("train_joeynmt", "", RANDOM, "joeynmt"),
    "JoeyNMT, float32": System("train_joeynmt", "", 4096, "joeynmt"),
}
"""bfloat16 where the system offers it on a CPU, as torch's autocast."""


def run(program: str, options: list[str], python: str = sys.executable) -> Any:
    """What the program of benchmarks/peers prints as its last line, read as JSON."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "MKL_"))}
    result = subprocess.run(
        [python, str(PROGRAMS / f"{program}.py"), *options],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        env=environment,
    )
    if result.returncode:
        sys.exit(f"error: {program} {' '.join(options)} failed:\n{result.stderr[-3000:]}")
    return json.loads(result.stdout.splitlines()[-1])


def train(system: System, batch: int, arguments: argparse.Namespace, folder: Path) -> Any:
    """What the system's program measured; batches for peers are kept in the folder."""
    options = [*system.options.split(), "--seconds", str(arguments.seconds)]
    if system in OURS.values():
        return run(
            system.program, [*options, "--shards", str(arguments.shards), "--batch-tokens", str(batch)]
        )
    path = folder / f"{batch}.pt"
    if not path.exists():
        config = load_params(TrainParams, ROOT / "params.yaml").training
        write_batches(open_shards(arguments.shards), config, batch, path)
    python = str(python_of(system.environment)) if system.environment else sys.executable
    return run(system.program, [*options, "--batches", str(path)], python)


def probe(systems: dict[str, System], arguments: argparse.Namespace, folder: Path) -> None:
    """Print tokens per second of each system with each batch size."""
    for name, system in systems.items():
        for batch in BATCH_TOKENS if system.batch != RANDOM else (RANDOM,):
            measured = train(system, batch, arguments, folder)
            print(f"{name}, {batch}: {measured['tokens'] / measured['seconds']:,.0f}", flush=True)


def measure(
    systems: dict[str, System], arguments: argparse.Namespace, folder: Path
) -> tuple[dict[str, list[Any]], list[Any]]:
    """What each system measured in each round, and in each round the rate of matrix products."""
    found: dict[str, list[Any]] = {name: [] for name in systems}
    ceilings = []
    generator = random.Random(0)
    for number in range(arguments.rounds):
        ceilings.append(run("matmul_ceiling", []))
        print(f"round {number + 1}: matrix products: {ceilings[-1]}", file=sys.stderr)
        for name in generator.sample(list(systems), len(systems)):
            measured = train(systems[name], systems[name].batch, arguments, folder)
            found[name].append(measured)
            rate = measured["tokens"] / measured["seconds"]
            print(f"round {number + 1}: {name}: {rate:,.0f} tokens/s", file=sys.stderr)
    return found, ceilings


def main() -> None:
    """Print machine and table; write JSON and picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shards", type=Path, default=ROOT / "data/shards/train")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="of each system in each round, after a warm-up"
    )
    parser.add_argument("--only", default="", help="the systems whose name contains this")
    parser.add_argument("--probe", action="store_true", help="print the rate with each batch size, and end")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/training_speed.json")
    parser.add_argument("--picture", type=Path, default=ROOT / "docs/images/training_speed.png")
    arguments = parser.parse_args()
    if absent := [peer for peer in PEERS if not python_of(peer).exists()]:
        sys.exit(f"error: {', '.join(absent)} not installed; run python benchmarks/peers/install.py first")
    systems = {name: system for name, system in (OURS | OTHERS).items() if arguments.only in name}
    ours = [name for name in OURS if name in systems]
    with tempfile.TemporaryDirectory() as folder:
        if arguments.probe:
            probe(systems, arguments, Path(folder))
            return
        found, ceilings = measure(systems, arguments, Path(folder))
    result = summary(found, ceilings, ours)
    batches = {name: system.batch_name for name, system in systems.items()}
    for name in result:
        result[name]["batch"] = batches[name]
    report = {
        "machine": machine(ROOT),
        "rounds": arguments.rounds,
        "seconds": arguments.seconds,
        "matrix products": ceilings,
        "systems": result,
    }
    arguments.output.parent.mkdir(exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    draw(result, ours, arguments.picture)
    texts = (json.dumps(report["machine"], indent=2), table(result, batches, ours[:2]), shares(result, ours))
    print(*texts, sep="\n\n")


if __name__ == "__main__":
    main()
