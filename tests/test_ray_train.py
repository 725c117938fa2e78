"""Training on Ray, for real: interrupted, killed and failing, it ends with the weights of an undisturbed run.

Each start of Ray takes seconds, so there are few tests here; the parts have tests of their own in tests/training.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
import torch
from mlflow import MlflowClient
from safetensors.torch import load_file

from passerelle.config import ShardsConfig, TokenizerConfig, TrainParams, load_params
from passerelle.data.pairs import open_shards
from passerelle.data.shards import write_shards
from passerelle.data.tokenizer import load_tokenizer, train_tokenizer
from passerelle.evaluation.validation_bleu import validation_bleu
from passerelle.models import build_model
from passerelle.training.checkpoint import (
    checkpoint_folders,
    latest_checkpoint,
    read_checkpoint,
    save_checkpoint,
)
from passerelle.training.group import ALONE
from passerelle.training.loop import train
from passerelle.training.ray_train import train_on_ray
from small_model import SOURCES, TARGETS
from source_imports import ROOT

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below Ray and MLflow warn of one another

SMALL = {
    "d_model": 16,
    "num_heads": 2,
    "num_layers": 1,
    "d_ff": 24,
    "precision": "fp32",
    "micro_batch_tokens": 64,
    "max_steps": 400,
    "warmup_steps": 20,
    "validate_every": 40,
    "average_checkpoints": 1,
}
STEPS = list(range(10, 401, 10))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder as it is before stage `train`."""
    folder = tmp_path_factory.mktemp("corpus")
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    for key, value in SMALL.items():
        text, count = re.subn(rf"(?m)^(  {key}:) \S+", rf"\1 {value}", text)
        assert count == 1, key
    (folder / "params.yaml").write_text(text, encoding="utf-8")
    targets = (TARGETS * 2)[: len(SOURCES)]
    prepared = folder / "data" / "prepared"
    prepared.mkdir(parents=True)
    for split, rows in (("train", slice(0, None)), ("valid", slice(0, None, 3))):
        table = pa.table({"source": SOURCES[rows], "target": targets[rows]})
        if split == "valid":
            references = [[target] for target in targets[rows]]
            table = pa.table({"source": SOURCES[rows], "references": references, "group": SOURCES[rows]})
        pq.write_table(table, prepared / f"{split}.parquet")
    train_tokenizer(
        prepared / "train.parquet", folder / "data" / "tokenizer", TokenizerConfig(vocab_size=300)
    )
    tokenizer = load_tokenizer(folder / "data" / "tokenizer")
    for split in ("train", "valid"):
        write_shards(
            prepared / f"{split}.parquet", folder / "data" / "shards" / split, tokenizer, ShardsConfig()
        )
    return folder


@pytest.fixture(scope="session")
def params(corpus: Path) -> TrainParams:
    return load_params(TrainParams, corpus / "params.yaml")


@pytest.fixture(scope="session")
def vocab_size(corpus: Path) -> int:
    return load_tokenizer(corpus / "data" / "tokenizer").vocab_size


@pytest.fixture(scope="session")
def undisturbed(
    corpus: Path, params: TrainParams, vocab_size: int, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, torch.Tensor]:
    """The last checkpoint's tensors after training in this process, without Ray."""
    folder = tmp_path_factory.mktemp("undisturbed")
    torch.manual_seed(params.training.seed)
    train(
        build_model(params.model, vocab_size),
        open_shards(corpus / "data" / "shards" / "train"),
        open_shards(corpus / "data" / "shards" / "valid"),
        params.training,
        device=torch.device("cpu"),
        group=ALONE,
        report=lambda report: save_checkpoint(folder, report.step, report.write) and None,
        progress=lambda progress: None,
        resume_from=None,
    )
    latest = latest_checkpoint(folder)
    assert latest is not None
    return read_checkpoint(latest)[0]


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    os.environ["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = "0.2"
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def assert_same_weights(found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> None:
    for name, tensor in expected.items():
        if name.startswith("model."):
            weights = found.get(name, found.get(name.removeprefix("model.")))
            torch.testing.assert_close(weights, tensor, atol=2e-3, rtol=0)


def start_stage(corpus: Path, state: Path, num_workers: int) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "DVC_"))}
    environment |= {
        "PASSERELLE_RUNS": str(state / "runs"),
        "PASSERELLE_NUM_WORKERS": str(num_workers),
        "MLFLOW_TRACKING_URI": f"sqlite:///{state / 'mlflow.db'}",
        "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    }
    return subprocess.Popen(
        [sys.executable, str(ROOT / "pipeline" / "train.py")],
        cwd=corpus,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # a test run in the background has it ignored, and a child inherits that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def left_behind(state: Path) -> list[psutil.Process]:
    """Processes that a stage with this state has started and that still run."""
    found = []
    for process in psutil.process_iter(["environ"]):
        if (process.info["environ"] or {}).get("PASSERELLE_RUNS") == str(state / "runs"):
            found.append(process)
    return found


def recorded(state: Path) -> tuple[str, list[int]]:
    """Status of the one MLflow run, and the steps of its loss curve."""
    client = MlflowClient(f"sqlite:///{state / 'mlflow.db'}", f"sqlite:///{state / 'mlflow.db'}")
    (run,) = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
    return run.info.status, [point.step for point in client.get_metric_history(run.info.run_id, "loss")]


def test_an_interrupted_stage_goes_on_with_another_number_of_workers(
    corpus: Path, tmp_path: Path, undisturbed: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", str(tmp_path / "mlartifacts"))
    first = start_stage(corpus, tmp_path, num_workers=2)
    assert first.stdout is not None
    lines = []
    for line in first.stdout:
        lines.append(line)
        if line.startswith("validation at step 80:"):
            break
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does
    rest = first.stdout.read()
    assert first.wait() == 130, "".join(lines) + rest
    assert re.search(r"stopped at step \d+, last checkpoint at step \d+0; run `dvc repro` again to", rest), (
        rest
    )
    psutil.wait_procs(left_behind(tmp_path), timeout=10)
    assert left_behind(tmp_path) == []
    assert recorded(tmp_path)[0] == "KILLED"

    second = start_stage(corpus, tmp_path, num_workers=1)
    output, _ = second.communicate()
    assert second.returncode == 0, output
    assert re.match(r"training run [0-9a-f]{16} on 1 CPU worker, going on from step \d+0\n", output), output
    assert not re.search("ray|mlflow|warn", output, re.IGNORECASE), output
    assert "validation at step 80:" not in output  # what was done is not done again
    assert_same_weights(load_file(corpus / "model" / "weights.safetensors"), undisturbed)
    assert json.loads((corpus / "metrics" / "training.json").read_text())["steps"] == 400
    assert recorded(tmp_path) == ("FINISHED", STEPS)


def kill_a_worker_after(checkpoint: Path) -> None:
    """SIGKILL to one of this process's Ray workers, once the checkpoint is there."""
    while not checkpoint.is_dir():
        time.sleep(0.02)
    names = {process: " ".join(process.cmdline()) for process in psutil.Process().children(recursive=True)}
    victim = next(process for process, name in names.items() if "RayTrainWorker" in name)
    victim.send_signal(signal.SIGKILL)


def test_a_killed_worker_is_replaced_and_nothing_is_lost(
    cluster: None,
    corpus: Path,
    params: TrainParams,
    vocab_size: int,
    undisturbed: dict[str, torch.Tensor],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run_folder, told = tmp_path / "runs" / "killed", tmp_path / "rows.jsonl"

    def on_rows(rows: Sequence[Mapping[str, float]], is_last: bool) -> None:
        with told.open("a") as file:
            file.write(json.dumps([[row["step"] for row in rows], is_last]) + "\n")

    run_folder.mkdir(parents=True)
    killer = threading.Thread(target=kill_a_worker_after, args=(run_folder / "step-0000040",))
    killer.start()
    arguments: dict[str, Any] = {
        "shards": corpus / "data" / "shards",
        "vocab_size": vocab_size,
        "run_folder": run_folder,
        "on_rows": on_rows,
        "bleu": validation_bleu(
            params, corpus / "data" / "prepared" / "valid.parquet", corpus / "data" / "tokenizer"
        ),
    }
    train_on_ray(params, **arguments)
    killer.join()
    output, errors = capfd.readouterr()
    assert "of training died; starting again from the last checkpoint" in output
    assert errors == ""
    assert output.count("validation at step 40:") == 1  # what was done is not done again
    latest = latest_checkpoint(run_folder)
    assert latest == run_folder / "step-0000400"
    tensors, facts = read_checkpoint(latest)
    assert_same_weights(tensors, undisturbed)
    assert [row["step"] for row in facts["history"]] == STEPS
    assert all(("valid_bleu" in row) == ("valid_loss" in row) for row in facts["history"])
    assert len(checkpoint_folders(run_folder)) == 2
    reported = [json.loads(line) for line in told.read_text().splitlines()]
    assert {step for steps, _ in reported for step in steps} == set(STEPS)
    assert [is_last for _, is_last in reported].count(True) == 1
    train_on_ray(params, **arguments)  # it is finished: Ray is not even asked
    assert capfd.readouterr().out == ""


def test_a_fault_in_a_worker_is_told_in_one_line_and_not_tried_again(
    cluster: None, corpus: Path, params: TrainParams, vocab_size: int, tmp_path: Path
) -> None:
    training = params.training.model_copy(update={"learning_rate": 1e30})
    (tmp_path / "runs" / "diverging").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"^step \d+: .*lower training.learning_rate"):
        train_on_ray(
            params.model_copy(update={"training": training}),
            shards=corpus / "data" / "shards",
            vocab_size=vocab_size,
            run_folder=tmp_path / "runs" / "diverging",
            on_rows=lambda rows, is_last: None,
            bleu=None,
        )
    assert not (tmp_path / "runs" / "diverging" / "events.jsonl").exists()
