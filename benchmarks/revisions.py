"""Whether one git revision trains or decodes slower than another.

    python benchmarks/revisions.py main~1 HEAD [--rounds 5] [--output FILE]

Both are checked out into temporary worktrees. By turns, each in a process of its own with its own source and
params.yaml, PROGRAM trains some steps of the default model on data/shards, or translates validation sentences greedily
by model/, or by random weights where there is none (then every translation runs to its longest length). What counts is
the ratio, second to first. Only what has hardly changed is called: `train`, `translate`, `load_params`, `open_shards`,
`build_model`. Where a revision lacks it or wants it otherwise, that measure is left out, and its error is said.
The exit status is 1 where a median is below 0.95, or nothing could be measured.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from passerelle.identity import identity

ROOT = Path(__file__).resolve().parents[1]
SLOWER = 0.95
MEASURES = {"training": "target tokens/s", "decoding": "sentences/s"}
PROGRAM = """
import inspect, sys, time
from pathlib import Path
import torch
from passerelle.config import DecodingConfig, TrainParams
from passerelle.models import build_model
from passerelle.params_file import load_params

root, amount = Path(sys.argv[2]), int(sys.argv[3])
params = load_params(TrainParams)

def training():
    from passerelle.data.pairs import open_shards
    from passerelle.training.group import ALONE
    from passerelle.training.loop import HISTORY_EVERY, train
    rates, steps = [], iter(range(2 * HISTORY_EVERY + amount))
    torch.manual_seed(0)
    wanted = inspect.signature(train).parameters
    given = dict(
        device=torch.device("cpu"), group=ALONE, report=lambda report: None,
        save=lambda step, write: None, stop=lambda: next(steps, None) is None,
        progress=lambda progress: rates.append(progress.tokens_per_second),
    )
    config = params.training.model_copy(update={"validate_every": 10**6, "max_steps": 10**6})
    train(
        build_model(params.model, 8000), open_shards(root / "data/shards/train"),
        open_shards(root / "data/shards/valid"), config,
        **{name: value for name, value in given.items() if name in wanted},
    )
    rates = rates[1:]  # of the steps after the first ones
    return len(rates) / sum(1 / rate for rate in rates)

def decoding():
    import pyarrow.parquet
    from passerelle.data.tokenizer import load_tokenizer
    from passerelle.decoding.translate import translate
    from passerelle.model_folder import LoadedModel, load_model
    if (root / "model").is_dir():
        loaded = load_model(root / "model")
    else:
        torch.manual_seed(0)
        tokenizer = load_tokenizer(root / "data/tokenizer")
        model = build_model(params.model, tokenizer.vocab_size).eval()
        loaded = LoadedModel(model, tokenizer, params.languages, fingerprint="")
    table = pyarrow.parquet.read_table(root / "data/prepared/valid.parquet", columns=["source"])
    sentences = table["source"].to_pylist()[:amount]
    greedy = DecodingConfig(beam_size=1)
    translate(loaded, sentences[:20], greedy)
    began = time.perf_counter()
    translate(loaded, sentences, greedy)
    return len(sentences) / (time.perf_counter() - began)

print(globals()[sys.argv[1]]())
"""


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A worktree of the revision, removed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "worktree"
        _git("worktree", "add", "--quiet", "--detach", str(path), revision)
        try:
            yield path
        finally:
            _git("worktree", "remove", "--force", str(path))


def measured(worktree: Path, measure: str, amount: int) -> tuple[float | None, str]:
    """The rate of a revision, in a new process; else None, and the last line of its error."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, measure, str(ROOT), str(amount)],
        cwd=worktree,
        env=os.environ | {"PYTHONPATH": str(worktree / "src")},
        capture_output=True,
        text=True,
    )
    if result.returncode:
        return None, (result.stderr.strip().splitlines() or [f"status {result.returncode}"])[-1]
    return float(result.stdout.split()[-1]), ""


def compared(measure: str, worktrees: Sequence[Path], num_rounds: int, amount: int) -> dict[str, Any]:
    """Rates of both by turns, and their ratio over the rounds; the first to go changes with each."""
    rates: list[list[float]] = [[], []]
    for number in range(num_rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            rate, error = measured(worktrees[which], measure, amount)
            if rate is None:
                return {"left out": f"{('first', 'second')[which]} revision: {error}"}
            rates[which].append(rate)
            print(
                f"{measure}, round {number + 1}, {('first', 'second')[which]}: {rate:,.1f}", file=sys.stderr
            )
    ratios = [second / first for first, second in zip(*rates, strict=True)]
    return {
        "unit": MEASURES[measure],
        "first, median": round(statistics.median(rates[0]), 1),
        "second, median": round(statistics.median(rates[1]), 1),
        "ratio": {
            "median": round(statistics.median(ratios), 3),
            "low": round(min(ratios), 3),
            "high": round(max(ratios), 3),
        },
        "is slower by over 5 %": statistics.median(ratios) < SLOWER,
    }


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main() -> None:
    """Print machine, revisions and ratios as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    names = [_git("rev-parse", "--short", name) for name in (arguments.first, arguments.second)]
    tags = identity(ROOT)
    with checked_out(names[0]) as first, checked_out(names[1]) as second:
        is_same = (first / "params.yaml").read_bytes() == (second / "params.yaml").read_bytes()
        results = {
            measure: compared(measure, (first, second), arguments.rounds, amount)
            for measure, amount in (("training", arguments.steps), ("decoding", arguments.sentences))
        }
    result = {
        "machine": {key: tags[key] for key in tags if key.startswith(("machine.", "version.torch"))},
        "first": names[0],
        "second": names[1],
        "same params.yaml": is_same,
        "decoded by": "model/" if (ROOT / "model").is_dir() else "random weights",
        **results,
    }
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.output:
        arguments.output.write_text(text + "\n")
    slower = [one["is slower by over 5 %"] for one in results.values() if "ratio" in one]
    sys.exit(1 if any(slower) or not slower else 0)


if __name__ == "__main__":
    main()
