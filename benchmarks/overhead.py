"""What Ray, MLflow, checkpoints and validation cost a training run, beside its steps.

    python benchmarks/overhead.py [--steps 1800] [--set KEY=VALUE ...] [--output benchmarks/results/overhead.json]

Runs the stage `train` for real, after the stage `shards`: Ray Train, its usual workers, MLflow in a new database,
validation with BLEU and a checkpoint as often as params.yaml says; in a temporary folder, and shortened to --steps (a
multiple of validate_every keeps the proportion). The stage runs a copy of the source in which each function of CALLS
notes when it began and ended; that takes microseconds a step. All seconds are those of worker 0, whose steps end with
the others'. A plain loop of the same steps in as many processes (`workers.py`) runs before and after it. --set changes
params.yaml: `--set d_model=256 d_ff=1024 optimizer=adam` makes the model that training_speed.py compares.

Start-up: from the start of the process to the first step. Wall: from there to the end of the process. Overhead: what
of the wall is not within steps. Beside them: work in threads that nothing waits for.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers import measure

from passerelle.config import TrainParams
from passerelle.identity import identity
from passerelle.params_file import load_params

ROOT = Path(__file__).resolve().parents[1]
SETTING = "2 workers x 1 thread"
CALLS = {
    "training/loop.py": ("train_step", "validation_loss"),
    "training/ray_worker.py": ("save_checkpoint", "prune_checkpoints", "report_to_ray", "train"),
    "training/ray_train.py": ("_fit", "train_on_ray"),
    "training/publish.py": ("publish",),
    "sending.py": ("Sender.close",),
    "mlflow_run.py": ("MlflowRun.perform",),
    "tracking.py": ("Curves.__call__",),
}
"""In the copy of src/passerelle, the functions and methods that note their times."""
BLEU = "from noted_times import noted_result\nValidationBleu.on = noted_result(ValidationBleu.on, 'bleu')\n"
NOTED_TIMES = """
import functools, json, os, time

def noted(function, name):
    @functools.wraps(function)
    def call(*arguments, **options):
        began = time.time()
        result = None
        try:
            result = function(*arguments, **options)
            return result
        finally:
            line = [name, began, time.time(), os.getpid(), getattr(result, "num_tokens", 0)]
            with open(os.environ["NOTED_TIMES"], "a") as file:
                file.write(json.dumps(line) + "\\n")
    return call

def noted_result(function, name):
    @functools.wraps(function)
    def call(*arguments, **options):
        return noted(function(*arguments, **options), name)
    return call
"""
FIRST, WARM_UP = 100, 10
"""The first steps, after those of the warm-up, that the sustained rate is compared with."""


@dataclass(frozen=True)
class Call:
    """One call of a function of CALLS."""

    name: str
    began: float
    ended: float
    process: int
    num_tokens: int
    """Target tokens of a step, over all workers; 0 for all else."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended - self.began


def timed_copy(folder: Path) -> None:
    """src/passerelle below the folder, whose functions of CALLS note their times."""
    package = folder / "passerelle"
    shutil.copytree(ROOT / "src/passerelle", package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "noted_times.py").write_text(NOTED_TIMES)
    for path, names in CALLS.items():
        lines = "".join(f"{name} = noted({name}, {name!r})\n" for name in names)
        with (package / path).open("a") as file:
            file.write(f"\nfrom noted_times import noted\n{lines}")
    with (package / "evaluation/validation_bleu.py").open("a") as file:
        file.write(f"\n{BLEU}")


def changed(text: str, changes: Mapping[str, str]) -> str:
    """The params file with other values of keys whose names stand in it once."""
    for key, value in changes.items():
        text, number = re.subn(rf"(?m)^(  {key}:) \S+", rf"\1 {value}", text)
        if number != 1:
            raise SystemExit(f"--set {key}: params.yaml has {number} keys of this name, and must have one")
    return text


def run_stage(folder: Path) -> tuple[float, float, list[Call]]:
    """Run the stage in the folder; when its process began and ended, and the calls noted, in the order of their end."""
    (folder / "data").symlink_to(ROOT / "data")
    timed_copy(folder / "src")
    environment = os.environ | {
        "PYTHONPATH": str(folder / "src"),
        "NOTED_TIMES": str(folder / "times"),
        "PASSERELLE_RUNS": str(folder / "runs"),
        "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
    }
    began = time.time()
    command = [sys.executable, str(ROOT / "pipeline/train.py")]
    subprocess.run(command, cwd=folder, env=environment, stdout=sys.stderr, check=True)
    ended = time.time()
    lines = (folder / "times").read_text().splitlines()
    return began, ended, [Call(*json.loads(line)) for line in lines]


def parts(began: float, ended: float, calls: Sequence[Call]) -> dict[str, Any]:
    """Seconds of the run's parts, and their shares of the wall beyond start-up."""
    worker = next(call.process for call in calls if call.name == "save_checkpoint")
    own = [call for call in calls if call.process == worker]
    steps = [call for call in own if call.name == "train_step"]
    [loop] = [call for call in own if call.name == "train"]
    first = steps[0].began
    names = {
        "steps": ("train_step",),
        "validation loss": ("validation_loss",),
        "BLEU": ("bleu",),
        "checkpoints": ("save_checkpoint", "prune_checkpoints"),
        "report to Ray": ("report_to_ray",),
    }
    seconds = {part: sum(call.seconds for call in own if call.name in of) for part, of in names.items()}
    seconds["rest of the loop"] = loop.ended - first - sum(seconds.values())
    driver = {call.name: call for call in calls if call.process != worker}
    fit, whole, publish, close = (
        driver[name] for name in ("_fit", "train_on_ray", "publish", "Sender.close")
    )
    seconds["end: Ray"] = whole.ended - loop.ended
    seconds["end: publish"] = publish.seconds
    seconds["end: MLflow"] = close.seconds
    seconds["end: rest"] = ended - loop.ended - (whole.ended - loop.ended) - publish.seconds - close.seconds
    wall = ended - first
    overhead = wall - seconds["steps"]
    aside = {
        name: sum(call.seconds for call in calls if call.name == name) for name in ("MlflowRun.perform",)
    }
    curves = [call.seconds for call in calls if call.name == "Curves.__call__"]
    return {
        "start-up, s": round(first - began, 2),
        "of it until Ray Train is asked, s": round(fit.began - began, 2),
        "wall beyond start-up, s": round(wall, 2),
        "overhead, share of the wall": round(overhead / wall, 4),
        "steps": len(steps),
        "validations": sum(call.name == "validation_loss" for call in own),
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "share of the wall": {name: round(value / wall, 4) for name, value in seconds.items()},
        "beside, s": {"MLflow, in threads": round(aside["MlflowRun.perform"], 2)},
        "longest wait for MLflow of Ray's controller, s": round(max(curves), 4),
    }


def rates(calls: Sequence[Call], plain: Sequence[float]) -> dict[str, Any]:
    """Tokens per second of the steps, against the first ones and the plain loop."""
    worker = next(call.process for call in calls if call.name == "save_checkpoint")
    steps = [call for call in calls if call.process == worker and call.name == "train_step"][WARM_UP:]

    def rate(some: Sequence[Call]) -> float:
        return sum(step.num_tokens for step in some) / sum(step.seconds for step in some)

    tenth = max(len(steps) // 10, 1)
    tenths = [rate(steps[begin : begin + tenth]) for begin in range(0, tenth * 10, tenth)]
    sustained, first = rate(steps), rate(steps[:FIRST])
    return {
        "sustained": round(sustained),
        f"first {FIRST} steps after {WARM_UP}": round(first),
        "plain loop": [round(value) for value in plain],
        "sustained to first": round(sustained / first, 3),
        "sustained to plain loop": round(sustained / statistics.mean(plain), 3),
        "by tenths of the run": [round(value) for value in tenths],
    }


def main() -> None:
    """Print the machine, the parts of the run and its rates as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--plain-steps", type=int, default=40)
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", dest="changes")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if wrong := [change for change in arguments.changes if "=" not in change]:
        parser.error(f"--set {wrong[0]}: must be KEY=VALUE")
    changes = dict(change.split("=", 1) for change in arguments.changes)
    warmup_steps = load_params(TrainParams, ROOT / "params.yaml").training.warmup_steps
    steps = {"max_steps": str(arguments.steps), "warmup_steps": str(min(warmup_steps, arguments.steps // 2))}
    shards = str(ROOT / "data/shards/train")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        text = (ROOT / "params.yaml").read_text()
        Path("params.yaml").write_text(changed(text, steps | changes))
        plain = [measure(SETTING, shards, arguments.plain_steps)]
        began, ended, calls = run_stage(Path(folder))
        plain.append(measure(SETTING, shards, arguments.plain_steps))
    tags = identity(ROOT)
    kept = ("machine.", "version.torch", "version.ray", "version.mlflow", "git.")
    result = {
        "machine": {key: tags[key] for key in tags if key.startswith(kept)},
        "params.yaml, changed": steps | changes,
        **parts(began, ended, calls),
        "tokens per second": rates(calls, plain),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.output:
        arguments.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
