"""Training on Ray in this process: a killed worker is replaced, Ctrl-C stops it, a fault that would recur is told.

Each start of Ray takes seconds, so there are few tests here; the parts have tests of their own in tests/training.
"""

import json
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import ray
import torch
from ray import cloudpickle
from torch import Tensor

from passerelle.config import TrainParams
from passerelle.evaluation.validation_bleu import validation_bleu
from passerelle.tracking import Curves
from passerelle.training.checkpoint import (
    checkpoint_folders,
    checkpoint_step,
    latest_checkpoint,
    read_checkpoint,
)
from passerelle.training.group import Bleu, Reduce
from passerelle.training.ray_train import train_on_ray
from passerelle.training.stopping import is_stop_asked
from training_stage import assert_same_weights

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below Ray and MLflow warn of one another

STEPS = list(range(10, 281, 10))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    os.environ["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = "0.2"
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def test_curves_that_have_been_sent_travel_to_new_workers(
    dead_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray sends what the controller holds to workers that it starts again."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", dead_server)
    curves = Curves("0123456789abcdef", tmp_path)
    curves([{"step": 10, "learning_rate": 0.1, "tokens_per_second": 1.0}], False)
    again = pickle.loads(pickle.dumps(curves))
    again([{"step": 20, "learning_rate": 0.1, "tokens_per_second": 1.0}], False)


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Ray's processes cannot import this file


@dataclass(frozen=True)
class DisturbingBleu:
    """BLEU of validations. Worker 1 is killed in the one after step 40; in that after 80 the driver is interrupted."""

    bleu: Bleu
    run_folder: Path
    driver: int

    def on(
        self, device: torch.device, *, rank: int, num_workers: int, reduce: Reduce
    ) -> Callable[[Mapping[str, Tensor]], float]:
        measure = self.bleu.on(device, rank=rank, num_workers=num_workers, reduce=reduce)
        killed = self.run_folder.parent / "a worker was killed"

        def bleu(parameters: Mapping[str, Tensor]) -> float:
            steps = [checkpoint_step(folder) for folder in checkpoint_folders(self.run_folder)]
            if rank == 1 and steps == [40] and not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if rank == 1 and max(steps, default=0) == 80:
                os.kill(self.driver, signal.SIGINT)
                while not is_stop_asked(self.run_folder):
                    time.sleep(0.05)
            return measure(parameters)

        return bleu


def test_a_killed_worker_is_replaced_and_an_interrupted_run_goes_on_and_nothing_is_lost(
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
    bleu = validation_bleu(
        params, corpus / "data" / "prepared" / "valid.parquet", corpus / "data" / "tokenizer"
    )
    assert bleu is not None
    arguments: dict[str, Any] = {
        "shards": corpus / "data" / "shards",
        "vocab_size": vocab_size,
        "run_folder": run_folder,
        "on_rows": on_rows,
        "bleu": DisturbingBleu(bleu, run_folder, os.getpid()),
    }
    with pytest.raises(SystemExit, match="130"):
        train_on_ray(params, **arguments)
    output, errors = capfd.readouterr()
    assert "; starting again from the last checkpoint (1 of 3 times)" in output
    assert "stopping after this step; Ctrl-C again stops now\n" in output
    assert output.endswith(
        "stopped at step 121, last checkpoint at step 121; run `dvc repro` again to continue\n"
    )
    assert errors == ""
    assert output.count("validation at step 40:") == 1  # what was done is not done again
    train_on_ray(params, **arguments)
    assert "on 2 CPU workers, going on from step 121\n" in capfd.readouterr().out
    latest = latest_checkpoint(run_folder)
    assert latest == run_folder / "step-0000280"
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


def test_training_that_diverges_is_told_in_one_line_with_its_batch_and_not_tried_again(
    cluster: None, corpus: Path, params: TrainParams, vocab_size: int, tmp_path: Path
) -> None:
    run_folder = tmp_path / "runs" / "diverging"
    run_folder.mkdir(parents=True)
    training = params.training.model_copy(update={"learning_rate": 1e30, "max_skipped_steps": 2})
    with pytest.raises(
        ValueError,
        match=r"^step \d+: .*; the last batch is kept in .*/diverged-step-\d{7}.json; there is no checkpoint yet; "
        r"lower training.learning_rate or lengthen training.warmup_steps$",
    ):
        train_on_ray(
            params.model_copy(update={"training": training}),
            shards=corpus / "data" / "shards",
            vocab_size=vocab_size,
            run_folder=run_folder,
            on_rows=lambda rows, is_last: None,
            bleu=None,
        )
    assert not (run_folder / "events.jsonl").exists()
    (kept,) = run_folder.glob("diverged-step-*.json")
    assert json.loads(kept.read_text())["skipped_in_a_row"] == 2
