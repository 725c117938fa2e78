"""Stage `train`, killed, stopped and interrupted as a real process: it goes on, and ends as if nothing had happened.

Each start of Ray takes seconds, so each test shows several things; the parts have tests of their own in tests/training.
"""

import fcntl
import json
import os
import re
import signal
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file

from passerelle.training.checkpoint import checkpoint_name
from training_stage import (
    assert_same_weights,
    left_behind,
    read_until,
    recorded,
    run_folder_of,
    start_training,
    workers_of,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below Ray and MLflow warn of one another

STEPS = list(range(10, 401, 10))


def checkpoint_after_stop(said: str, state: Path) -> int:
    """The step that training says it stopped at, which is that of a checkpoint."""
    found = re.search(
        r"stopped at step (\d+), last checkpoint at step (\d+); run `dvc repro` again to continue", said
    )
    assert found, said
    assert found[1] == found[2]
    step = int(found[1])
    assert (run_folder_of(state) / checkpoint_name(step)).is_dir()
    return step


def test_an_interrupted_stage_keeps_its_last_step_and_goes_on_with_another_number_of_workers(
    corpus: Path, tmp_path: Path, undisturbed: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", str(tmp_path / "mlartifacts"))
    first = start_training(corpus, tmp_path, num_workers=2)
    read_until(first, "validation at step 80:")
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does
    said, _ = first.communicate()
    assert first.returncode == 130, said
    assert "stopping after this step; Ctrl-C again stops now\n" in said
    step = checkpoint_after_stop(said, tmp_path)
    psutil.wait_procs(left_behind(tmp_path), timeout=60)
    assert left_behind(tmp_path) == []
    assert recorded(tmp_path)[0] == "KILLED"

    second = start_training(corpus, tmp_path, num_workers=1)
    said = read_until(second, "validation at step")  # of an earlier stop it knows nothing
    assert f"on 1 CPU worker, going on from step {step}\n" in said
    os.killpg(second.pid, signal.SIGTERM)  # as a container that is stopped does
    said, _ = second.communicate()
    assert second.returncode == 143, said
    assert checkpoint_after_stop(said, tmp_path) > step
    psutil.wait_procs(left_behind(tmp_path), timeout=60)
    assert left_behind(tmp_path) == []
    assert recorded(tmp_path)[0] == "KILLED"

    third = start_training(corpus, tmp_path, num_workers=2)
    said, _ = third.communicate()
    assert third.returncode == 0, said
    assert not re.search("ray|mlflow|warn", said, re.IGNORECASE), said
    assert "validation at step 80:" not in said  # what was done is not done again
    assert_same_weights(load_file(corpus / "model" / "weights.safetensors"), undisturbed)
    assert json.loads((corpus / "metrics" / "training.json").read_text())["steps"] == 400
    assert recorded(tmp_path) == ("FINISHED", STEPS)


def test_a_worker_that_hangs_is_named_and_replaced_and_a_killed_driver_loses_nothing(
    corpus: Path, tmp_path: Path, undisturbed: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", str(tmp_path / "mlartifacts"))
    first = start_training(corpus, tmp_path, num_workers=2, PASSERELLE_EXCHANGE_SECONDS="20")
    read_until(first, "validation at step 40:")
    hung, other = workers_of(psutil.Process(first.pid))
    hung.send_signal(signal.SIGSTOP)
    said = read_until(first, "starting again from the last checkpoint (1 of 3 times)")
    assert re.match(rf"worker [01] \(process {hung.pid} on \S+\) .*step \d+; ", said.splitlines()[-1]), said
    read_until(first, "validation at step")  # with new workers
    assert not hung.is_running()
    assert not other.is_running()

    first.kill()
    first.communicate()
    psutil.wait_procs(left_behind(tmp_path), timeout=120)
    assert left_behind(tmp_path) == []
    with (run_folder_of(tmp_path) / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody holds it

    second = start_training(corpus, tmp_path, num_workers=2)
    said, _ = second.communicate()
    assert second.returncode == 0, said
    assert re.match(r"training run [0-9a-f]{16} on 2 CPU workers, going on from step \d+\n", said), said
    assert_same_weights(load_file(corpus / "model" / "weights.safetensors"), undisturbed)
    assert recorded(tmp_path) == ("FINISHED", STEPS)
