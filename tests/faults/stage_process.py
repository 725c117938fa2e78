"""Stages as real processes: a folder where all but `train` have run, and signals that meet a stage at its work."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from corpus_server import CorpusServer
from passerelle.config import LanguagesConfig, ModelConfig
from passerelle.corpus.sentence_hashes import hashes_of_pairs
from passerelle.data.tokenizer import load_tokenizer
from passerelle.model_folder import save_model
from passerelle.models import build_model
from source_imports import ROOT

CORPUS_STAGES = ("fetch", "prepare", "tokenizer", "shards")
STAGES = (*CORPUS_STAGES, "evaluate")
SHORT = ("prepare", "shards")
"""They write their outputs in a moment; the others wait for something meanwhile."""
MODEL = ModelConfig(d_model=24, num_heads=3, num_layers=1, d_ff=40)
SMALL = {
    "split": {"valid_sentences": 40, "test_sentences": 40},
    "tokenizer": {"vocab_size": 600},
    "decoding": {"beam_size": 1, "max_length": 20},
    "evaluation": {"bootstrap_samples": 100, "attention_sentences": ["Go."], "report_sentences": 1},
}
PATIENCE = 300.0
"""Seconds until a test gives up; none waits so long unless something is wrong."""


@dataclass(frozen=True)
class Place:
    """A folder where stages run, and their environment."""

    folder: Path
    environment: dict[str, str]

    def command(self, stage: str, *arguments: str) -> list[str]:
        return [sys.executable, str(ROOT / "pipeline" / f"{stage}.py"), *arguments]

    def start(self, stage: str, *arguments: str) -> subprocess.Popen[str]:
        """In a session of its own, so that a signal to its group meets it alone."""
        return subprocess.Popen(
            self.command(stage, *arguments),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # a test run in the background has it ignored, and a child inherits that
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, stage: str) -> None:
        with self.start(stage) as process:
            output, errors = process.communicate()
        assert process.returncode == 0, output + errors


def place_of(folder: Path, store: Path, **more: str) -> Place:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DVC", "MLFLOW"))
    }
    environment |= {
        "PASSERELLE_RUNS": str(folder / "runs"),
        "PASSERELLE_DECODING_PROCESSES": "2",
        "MLFLOW_TRACKING_URI": f"sqlite:///{store}",
        "_MLFLOW_SERVER_ARTIFACT_ROOT": str(store.parent / "artifacts"),
        "OMP_NUM_THREADS": "1",
        **more,
    }
    return Place(folder, environment)


def write_params(folder: Path, url: str) -> None:
    yaml = YAML()
    params: dict[str, Any] = yaml.load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    params["root"] = str(ROOT)
    params["corpus"] |= {"path": "absent.txt", "archive_variable": None, "urls": [url], "sha256": None}
    for section, values in SMALL.items():
        params[section] |= values
    with (folder / "params.yaml").open("w", encoding="utf-8") as file:
        yaml.dump(params, file)


def write_trained(folder: Path) -> None:
    """What stage `train` would leave: a model that has learnt nothing, so that its translations are long."""
    tokenizer = load_tokenizer(folder / "data/tokenizer")
    weights = build_model(MODEL, tokenizer.vocab_size).state_dict()
    for name in ("output.weight", "target_embedding.weight"):  # one tensor with source_embedding.weight
        del weights[name]
    save_model(
        folder / "model",
        weights,
        folder / "data/tokenizer/tokenizer.model",
        model=MODEL,
        languages=LanguagesConfig(),
        fingerprint="0123456789abcdef",
        training_sentences=hashes_of_pairs(folder / "data/prepared/train.parquet"),
    )
    (folder / "plots").mkdir()
    (folder / "plots/training.csv").write_text("step,loss,learning_rate\n10,3.5,0.1\n20,2.5,0.2\n")
    (folder / "plots/validation.csv").write_text("step,valid_loss,valid_bleu\n20,2.75,12.5\n")
    (folder / "metrics/training.json").write_text(json.dumps({"train_seconds": 12.5}), encoding="utf-8")


def contents(folder: Path) -> dict[str, bytes]:
    """Of all files that stages wrote, by their paths; a file or folder left over is among them."""
    found = {}
    for name in ("data", "metrics", "evaluation", ".metrics", ".evaluation"):
        for path in folder.glob(f"{name}*"):
            for member in (path, *path.rglob("*")):
                content = member.read_bytes() if member.is_file() else b"folder"
                found[member.relative_to(folder).as_posix()] = content
    return found


def undated(files: dict[str, bytes]) -> dict[str, bytes]:
    """Without what evaluate dates: the lineage, and the report that shows it."""
    return {name: content for name, content in files.items() if Path(name).stem not in ("lineage", "report")}


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.name.endswith(".partial"))


def until(has_happened: Callable[[], object], pause: float = 0.02) -> None:
    """Look every so many seconds; looking takes time from what is looked at."""
    end = time.monotonic() + PATIENCE
    while not has_happened():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(pause)


def processes(session: int) -> dict[int, list[str]]:
    """The processes of the session, with their command lines; those that have ended are none."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = stat.read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state not in "ZX":
                found[int(stat.parent.name)] = (stat.parent / "cmdline").read_text().split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def caught(place: Place, stage: str, server: CorpusServer) -> subprocess.Popen[str]:
    """The stage, halted in the midst of its work; signals reach it once it may go on (SIGCONT)."""
    for _ in range(20):
        server.may_go_on.clear()
        process = place.start(stage, *(["-v"] if stage == "tokenizer" else []))
        until(partial(is_at_work, place, stage, process), pause=0.001 if stage in SHORT else 0.02)
        send(signal.SIGSTOP, process)
        until(partial(is_halted, process))
        is_too_late = stage != "tokenizer" and not left_over(place.folder)
        if process.poll() is None and not is_too_late and catches_sigterm(process.pid):
            return process
        server.may_go_on.set()
        send(signal.SIGCONT, process)
        process.communicate()
    raise AssertionError(f"{stage} was never caught")


def send(number: signal.Signals, process: subprocess.Popen[str]) -> None:
    """To its group, if it has not ended."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def is_halted(process: subprocess.Popen[str]) -> bool:
    """Or has ended."""
    return process.poll() is not None or status(process.pid)["State"][0] == "T"


def status(process: int) -> dict[str, str]:
    """What the kernel says of it."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def catches_sigterm(process: int) -> bool:
    """Not so before Python has begun, and once it ends."""
    return bool(int(status(process)["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1)


def is_at_work(place: Place, stage: str, process: subprocess.Popen[str]) -> bool:
    """It has begun an output, and fetch an archive too; evaluate has started a process, tokenizer learns.

    Or it has been too fast for whoever looks, on a busy machine, and is done.
    """
    if process.poll() is not None:
        assert process.returncode == 0, process.communicate()
        return True
    if stage == "tokenizer":  # SentencePiece says so, and writes when it has learnt
        assert process.stderr is not None
        return "Starts training" in process.stderr.readline()
    if stage == "evaluate":
        return any("--multiprocessing-fork" in words for words in processes(process.pid).values())
    return len(left_over(place.folder)) == (2 if stage == "fetch" else 1)
