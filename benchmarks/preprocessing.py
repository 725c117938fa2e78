"""Time and memory of the four stages before training, on fra-eng repeated 1, 4 and 16 times, and through DVC.

    FRA_ENG_ARCHIVE=... python benchmarks/preprocessing.py [--copies 1 4 16] [--rounds 3] [--output FILE]

Each stage is a process, its start included, in a temporary folder with the parameters of params.yaml. A copy of the
corpus has a number of its own before both sentences of each pair, so that no pair of it is one of another copy.
`--rounds` are of the smallest corpus, of which the medians count; larger ones are run once. `dvc repro shards` is
timed on the smallest one, as often. Growth is the exponent p of cost = copies ** p, from the smallest corpus to the
largest.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from passerelle.config import FetchParams
from passerelle.corpus.fetch import TEXT, fetch_corpus
from passerelle.identity import identity
from passerelle.params_file import load_params
from passerelle.plain_yaml import read_yaml

ROOT = Path(__file__).resolve().parents[1]
STAGES = ("fetch", "prepare", "tokenizer", "shards")
UNITS = ("wall seconds", "CPU seconds", "peak MB")

Measures = dict[str, float]


def write_corpus(text: Path, copies: int, destination: Path) -> None:
    """The corpus `copies` times, each but the first with its number before the sentences of every pair."""
    with destination.open("w", encoding="utf-8", newline="\n") as file:
        for copy in range(copies):
            number = f"{copy} " if copy else ""
            with text.open(encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    source, *rest = line.split("\t")
                    file.write("\t".join([number + source, number + rest[0], *rest[1:]]) if rest else line)


def write_params(folder: Path, corpus: Path) -> None:
    """The project's parameters, for a folder elsewhere and this corpus. JSON is YAML."""
    params: dict[str, Any] = read_yaml(ROOT / "params.yaml")
    params["root"] = str(ROOT)
    params["corpus"] |= {"path": str(corpus), "archive_variable": None, "sha256": None, "max_bytes": 1 << 34}
    (folder / "params.yaml").write_text(json.dumps(params), encoding="utf-8")


def measured(command: list[str], folder: Path) -> Measures:
    """Wall and CPU seconds of the command, and the largest memory of it and of any process that it waited for."""
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    return dict(zip(UNITS, (wall, usage.ru_utime + usage.ru_stime, peak), strict=True))


def stages(folder: Path) -> dict[str, Measures]:
    """Of each stage, run one after the other."""
    return {stage: measured([sys.executable, str(ROOT / f"pipeline/{stage}.py")], folder) for stage in STAGES}


def through_dvc(folder: Path) -> Measures:
    """Of `dvc repro shards` in a new project without git; the memory is that of the largest stage, or of DVC."""
    for path in (folder / "data", folder / "metrics"):
        subprocess.run(["rm", "-rf", str(path)], check=True)
    dvc = [sys.executable, "-m", "dvc"]
    (folder / "dvc.yaml").write_bytes((ROOT / "dvc.yaml").read_bytes())
    (folder / "dvc.lock").unlink(missing_ok=True)
    subprocess.run([*dvc, "init", "--quiet", "--no-scm", "--force"], cwd=folder, check=True)
    return measured([*dvc, "repro", "--quiet", "shards"], folder)


def medians(rounds: Iterable[Measures]) -> Measures:
    """Of each unit."""
    rows = list(rounds)
    return {unit: statistics.median(row[unit] for row in rows) for unit in UNITS}


def growth(results: dict[int, dict[str, Measures]]) -> dict[str, Measures]:
    """Of each stage and unit the exponent between the smallest and the largest corpus."""
    small, large = min(results), max(results)
    if small == large:
        return {}
    return {
        stage: {
            unit: math.log(results[large][stage][unit] / results[small][stage][unit], large / small)
            for unit in UNITS
        }
        for stage in results[small]
    }


def total(stages: dict[str, Measures]) -> Measures:
    """Of all stages: the sum of the seconds, the largest of the memories."""
    return {
        unit: (max if unit == "peak MB" else sum)(stage[unit] for stage in stages.values()) for unit in UNITS
    }


def table(results: dict[int, dict[str, Measures]], exponents: dict[str, Measures]) -> str:
    """Markdown: a row for each stage, columns for each size and unit."""
    columns = [f"{copies}×, {unit}" for copies in results for unit in UNITS] + [
        f"growth, {unit}" for unit in UNITS
    ]
    lines = ["| stage | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 1) + "|"]
    for stage in (*STAGES, "all"):
        cells = [
            f"{results[copies][stage][unit]:,.{0 if unit == 'peak MB' else 1}f}"
            for copies in results
            for unit in UNITS
        ]
        cells += [f"{exponents[stage][unit]:.2f}" for unit in UNITS] if exponents else []
        lines.append(f"| {stage} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print the table; write machine, measures and exponents as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-dvc", action="store_true")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/preprocessing.json")
    arguments = parser.parse_args()
    results: dict[int, dict[str, Measures]] = {}
    dvc: list[Measures] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fetch_corpus(load_params(FetchParams, ROOT / "params.yaml").corpus, folder)
        for copies in sorted(arguments.copies):
            write_corpus(folder / TEXT, copies, folder / "corpus.txt")
            write_params(folder, folder / "corpus.txt")
            is_smallest = copies == min(arguments.copies)
            rounds = []
            for _ in range(arguments.rounds if is_smallest else 1):
                rounds.append(stages(folder))
                if is_smallest and not arguments.no_dvc:
                    dvc.append(through_dvc(folder))
                print(f"{copies}x: {total(rounds[-1])}", *dvc[-1:], file=sys.stderr)
            results[copies] = {stage: medians(one[stage] for one in rounds) for stage in STAGES}
            results[copies]["all"] = total(results[copies])
    exponents = growth(results)
    tags = identity(ROOT)
    result = {
        "machine": {key: tags[key] for key in tags if key.startswith(("machine.", "git."))},
        "tokenizer.max_sentences": read_yaml(ROOT / "params.yaml")["tokenizer"]["max_sentences"],
        "stages, by copies of the corpus": results,
        "dvc repro shards": medians(dvc) if dvc else None,
        "growth exponent": exponents,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(table(results, exponents))
    print(f"dvc repro shards: {result['dvc repro shards']}")


if __name__ == "__main__":
    main()
