"""A recorded run made again in a clone of its own, and both held side by side.

The clone has the run's commit, uncommitted changes and parameters, a DVC cache, checkpoints and an MLflow database
of its own: nothing is taken from what was computed before, and the recorded run is not touched. Its code runs
in the environment that this code runs in.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from passerelle.files import sha256_of_file, whole_folder
from passerelle.reproduce import Record, applied, git, raw_corpus

TOLERANCE = 1.0
"""Points of a score, 0 to 100. On the same machine all digits are equal; two trainings that differ by rounding
alone differ as two seeds do."""
MARK = "passerelle-reproduces"
"""In the clone's .git: a hash of the record that it was made from."""
ELSEWHERE = ("MLFLOW_", "_MLFLOW_", "DVC_EXP_")
LEFT_OUT = {"DVC_STAGE", "DVC_ROOT", "PASSERELLE_RUNS", "RAY_ADDRESS", "GIT_DIR", "GIT_INDEX_FILE"}
"""Variables that would lead to the runs, or to the code, of others."""
COUNTS = ("sentences", "references")


@dataclass(frozen=True)
class Outcome:
    """How the run made again compares with the recorded one."""

    lines: list[str]
    """A table."""
    faults: list[str]
    """Why it does not count as the same; empty where it does."""


def make_clone(record: Record, root: Path, folder: Path) -> None:
    """Make folder the project as it was when the run was made, whole or not at all.

    One that was made from the same record stays as it is. Raises ValueError where something else is in the way.
    """
    content = json.dumps([record.run_id, record.card, record.changes], sort_keys=True)
    seal = hashlib.sha256(content.encode()).hexdigest()
    mark = folder / ".git" / MARK
    if mark.is_file() and mark.read_text(encoding="utf-8") == seal:
        return
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ValueError(f"{folder}: exists already; remove it, or name another folder with --into")
    with whole_folder(folder) as temporary:
        git(root, "clone", "--quiet", "--no-checkout", str(root), str(temporary))
        git(temporary, "checkout", "--quiet", "--detach", record.commit)
        if record.changes:
            arguments, text = applied(record.changes)
            git(temporary, *arguments, text=text)
        pipeline = temporary / record.folder
        write_params(pipeline, record.variant, record.card.get("parameters", {}))
        (temporary / ".dvc").mkdir(exist_ok=True)
        (temporary / ".dvc" / "config.local").write_text("[cache]\n    dir = cache\n", encoding="utf-8")
        (temporary / ".git" / MARK).write_text(seal, encoding="utf-8")
    corpus = record.card.get("parameters", {}).get("corpus", {})
    if (source := raw_corpus(record, root)) and corpus.get("path") and not corpus.get("archive_variable"):
        place = folder / record.folder / corpus["path"]
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            place.symlink_to(source)


def write_params(pipeline: Path, variant: str, sections: Mapping[str, Mapping[str, Any]]) -> None:
    """Set what differs in the params.yaml of the pipeline, or of its variant where that one says it."""
    paths = [pipeline / "params.yaml"]
    if variant != ".":
        paths.append(pipeline / variant / "params.yaml")
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1000
    files = [yaml.load(path.read_text(encoding="utf-8")) for path in paths]
    changed = set()
    for section, values in sections.items():
        for key, value in values.items():
            owner = max(
                number for number, file in enumerate(files) if not number or key in (file.get(section) or {})
            )
            own = files[owner].setdefault(section, {})
            if own.get(key) != value:
                own[key] = value
                changed.add(owner)
    for number in changed:
        with paths[number].open("w", encoding="utf-8") as file:
            yaml.dump(files[number], file)


def run_pipeline(record: Record, root: Path, folder: Path) -> None:
    """Run the clone's pipeline up to the scores. ValueError where a stage fails; what it said is on the terminal."""
    stage = "evaluate" if record.variant == "." else f"evaluate@{record.variant}"
    target = f"{(Path(record.folder) / 'dvc.yaml').as_posix()}:{stage}"
    command = [sys.executable, "-m", "dvc", "repro", target]
    status = subprocess.run(
        command, cwd=folder, env=_environment(record, root, folder), check=False
    ).returncode
    if status:
        raise ValueError(
            f"{folder}: `dvc repro {target}` ended with status {status}, see above; the same command goes on there"
        )


def compare(record: Record, folder: Path, tolerance: float) -> Outcome:
    """What the clone made, against the record: hashes of what lies between, then scores."""
    pipeline = folder / record.folder
    path = pipeline / record.variant / "metrics" / "evaluation.json"
    if not path.is_file():
        raise ValueError(f"{path}: no such file; the pipeline wrote no scores")
    made, scores = json.loads(path.read_text(encoding="utf-8")), record.card["scores"]
    lines = [f"  {'same' if is_same else 'differs':8} {name}" for name, is_same in _hashes(record, pipeline)]
    lines += ["", f"  {'score':24}{'recorded':>10}{'here':>10}{'difference':>12}"]
    faults = []
    for name, then in scores.items():
        if name not in COUNTS and f"{name}_low" not in scores:
            continue
        if (now := made.get(name)) is None:
            faults.append(f"{name} was not measured again")
            continue
        lines.append(f"  {name:24}{then:10.2f}{now:10.2f}{now - then:+12.2f}")
        if abs(now - then) > (0 if name in COUNTS else tolerance):
            faults.append(f"{name} was {then:.2f} and is {now:.2f}")
    return Outcome(lines, faults)


def _hashes(record: Record, pipeline: Path) -> Iterator[tuple[str, bool]]:
    """What lies between the raw data and the scores, and whether it is the same, bit for bit."""
    data = record.card["data"]
    test = pipeline / "data" / "prepared" / "test.parquet"
    yield "test sentences", test.is_file() and sha256_of_file(test) == data["test_sha256"]
    for split, expected in data["shards_sha256"].items():
        manifest = _json(pipeline / "data" / "shards" / split / "manifest.json")
        yield f"shards, {split}", manifest.get("content_sha256") == expected
    hashes = _json(pipeline / record.variant / "model" / "config.json").get("sha256", {})
    yield "tokenizer", hashes.get("tokenizer.model") == record.card["tokenizer"]["sha256"]
    yield "weights", hashes.get("weights.safetensors") == record.card["model"]["sha256"]


def _json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def _environment(record: Record, root: Path, folder: Path) -> dict[str, str]:
    """This process's, but with the clone's code and none of what leads elsewhere."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in LEFT_OUT and not name.startswith(ELSEWHERE)
    }
    environment |= {
        "PYTHONPATH": str(folder.resolve() / "src"),  # comes before the code that is installed
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "DVC_NO_ANALYTICS": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    variable = record.card.get("parameters", {}).get("corpus", {}).get("archive_variable")
    if variable and (source := raw_corpus(record, root)):
        environment[variable] = str(source)
    return environment
