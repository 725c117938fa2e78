"""Stage `train` as a real process, with its workers, and what it left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import psutil
import torch
from mlflow import MlflowClient

from passerelle.tracking import num_unsent
from passerelle.training.attendance import read_mark
from passerelle.training.checkpoint import checkpoint_name
from stage_process import PATIENCE


def environment_of(state: Path) -> dict[str, str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "DVC_"))}
    return others | {
        "PASSERELLE_RUNS": str(state / "runs"),
        "MLFLOW_TRACKING_URI": f"sqlite:///{state / 'mlflow.db'}",
        "_MLFLOW_SERVER_ARTIFACT_ROOT": str(state / "mlartifacts"),
    }


@contextmanager
def training(corpus: Path, state: Path, num_workers: int, **more: str) -> Iterator[subprocess.Popen[str]]:
    """The stage at work, which can be held (`hold`); state: where runs and MLflow's database are.

    It is killed where it still runs at the end or after twice PATIENCE, so that no test waits for ever.
    """
    environment = environment_of(state) | {
        "PASSERELLE_NUM_WORKERS": str(num_workers),
        "PASSERELLE_GRACE_SECONDS": str(PATIENCE),
        "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
        **more,
    }
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("held_stage.py"))],
        cwd=corpus,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # a test run in the background has it ignored, and a child inherits that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    timer = Timer(2 * PATIENCE, process.kill)
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def hold(state: Path, step: int) -> Path:
    """From now on all workers wait in the validation after this step's, until the file that is given is removed."""
    path = state / "holds" / checkpoint_name(step)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    return path


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """What the stage says, up to the first line that contains the text."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if text in line:
            return said
    raise AssertionError(f"it ended without {text!r}: {said}")


def worker(state: Path, rank: int) -> psutil.Process:
    """The process of a worker that is at work."""
    mark = read_mark(run_folder_of(state), rank)
    assert mark is not None
    return psutil.Process(mark.process)


def left_behind(state: Path) -> list[psutil.Process]:
    """Processes that a stage with this state has started and that still run, after time enough to end."""
    end = time.monotonic() + PATIENCE
    while (found := at_work(state)) and time.monotonic() < end:
        psutil.wait_procs(found, timeout=1)
    return found


def at_work(state: Path) -> list[psutil.Process]:
    """Processes that a stage with this state has started."""
    found = []
    for process in psutil.process_iter(["environ", "status"]):
        is_of_it = (process.info["environ"] or {}).get("PASSERELLE_RUNS") == str(state / "runs")
        if is_of_it and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def run_folder_of(state: Path) -> Path:
    (folder,) = (state / "runs").iterdir()
    return folder


def recorded(state: Path) -> tuple[str, list[int]]:
    """Status of the one MLflow run, and the steps of its loss curve.

    On a slow machine, what the stage had no time for is sent first.
    """
    if num_unsent(run_folder_of(state)):
        command = [sys.executable, "-c", "from passerelle.cli import main; main()", "sync"]
        subprocess.run(command, env=environment_of(state), check=True, stdout=subprocess.DEVNULL)
    client = MlflowClient(f"sqlite:///{state / 'mlflow.db'}", f"sqlite:///{state / 'mlflow.db'}")
    (run,) = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
    return run.info.status, [point.step for point in client.get_metric_history(run.info.run_id, "loss")]


def assert_same_weights(found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> None:
    for name, tensor in expected.items():
        if name.startswith("model."):
            weights = found.get(name, found.get(name.removeprefix("model.")))
            torch.testing.assert_close(weights, tensor, atol=2e-3, rtol=0)
