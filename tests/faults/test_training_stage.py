"""Stage `train`, halted, stopped and killed as a real process: it ends as if nothing had happened.

Each start of Ray takes seconds, so one run is followed through all of it; the parts have tests of their own in
tests/training.
"""

import fcntl
import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from stage_process import until
from training_stage import (
    assert_same_weights,
    hold,
    left_behind,
    read_until,
    recorded,
    run_folder_of,
    training,
    worker,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below Ray and MLflow warn of one another


def test_a_run_whose_worker_hangs_and_which_is_stopped_and_killed_ends_as_an_undisturbed_one(
    corpus: Path,
    empty_store: Path,
    tmp_path: Path,
    undisturbed: dict[str, torch.Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", str(tmp_path / "mlartifacts"))
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    held = {step: hold(tmp_path, step) for step in (40, 80, 160)}

    with training(corpus, tmp_path, 2, PASSERELLE_EXCHANGE_SECONDS="20") as stage:
        read_until(stage, "validation at step 40:")
        hung, other = worker(tmp_path, 0), worker(tmp_path, 1)
        hung.send_signal(signal.SIGSTOP)
        held[40].unlink()
        said = read_until(stage, "starting again from the last checkpoint (1 of 3 times)")
        assert re.match(rf"worker 0 \(process {hung.pid} on \S+\) .*step \d+; ", said.splitlines()[-1]), said
        read_until(stage, "validation at step 80:")  # with new workers
        until(lambda: not (hung.is_running() or other.is_running()))
        os.killpg(stage.pid, signal.SIGTERM)  # as a container that is stopped does
        read_until(stage, "stopping after this step; Ctrl-C stops now\n")
        held[80].unlink()
        said, _ = stage.communicate()
    assert stage.returncode == 143, said
    stopped = re.search(r"stopped at step (\d+), last checkpoint at step (\d+); run `dvc repro` again", said)
    assert stopped, said
    assert stopped[1] == stopped[2]
    assert 80 < int(stopped[1]) <= 121
    assert left_behind(tmp_path) == []
    assert recorded(tmp_path)[0] == "KILLED"

    with training(corpus, tmp_path, 1) as stage:
        said = read_until(stage, "validation at step 160:")  # of an earlier stop it knows nothing
        assert f"on 1 CPU worker, going on from step {stopped[1]}\n" in said
        stage.kill()
        stage.communicate()
    assert left_behind(tmp_path) == []
    held[160].unlink()
    with (run_folder_of(tmp_path) / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody holds it

    with training(corpus, tmp_path, 2) as stage:
        said, _ = stage.communicate()
    assert stage.returncode == 0, said
    assert re.match(r"training run [0-9a-f]{16} on 2 CPU workers, going on from step 160\n", said), said
    assert not re.search("ray|mlflow|warn", said, re.IGNORECASE), said
    assert said.count("validation at step") == 3  # what was done is not done again
    assert_same_weights(load_file(corpus / "model" / "weights.safetensors"), undisturbed)
    assert json.loads((corpus / "metrics" / "training.json").read_text())["steps"] == 280
    assert recorded(tmp_path) == ("FINISHED", list(range(10, 281, 10)))
