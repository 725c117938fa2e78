"""A clock that jumps back, and files dated anyhow, change nothing: steps are counted, durations are monotonic."""

import io
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from passerelle.training import terminal
from passerelle.training.attendance import Attendance, late_workers
from passerelle.training.checkpoint import (
    checkpoint_folders,
    checkpoint_name,
    latest_checkpoint,
    read_checkpoint,
    save_checkpoint,
)
from passerelle.training.group import ALONE
from passerelle.training.loop import Progress, Report, train
from passerelle.training.publish import prune_checkpoints
from passerelle.training.stopping import Stopping
from tiny import tiny_config, tiny_model, tiny_pairs

DAY = 86_400


@pytest.fixture
def broken_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock shows a day less than the last."""
    days = count()
    monkeypatch.setattr(time, "time", lambda: 2e9 - next(days) * DAY)
    monkeypatch.setattr(time, "time_ns", lambda: (2_000_000_000 - next(days) * DAY) * 10**9)


def start(run_folder: Path, stop_after: int | None = None) -> list[int]:
    """Train as a worker does, from the newest checkpoint; the steps of the progress that was noted."""
    config = tiny_config(max_steps=20, validate_every=5, warmup_steps=5)
    latest = latest_checkpoint(run_folder)
    steps = count(int(latest.name.removeprefix("step-")) + 1 if latest else 1)
    noted: list[int] = []

    def save(step: int, write: Callable[[Path], None]) -> None:
        folder = save_checkpoint(run_folder, step, write)
        prune_checkpoints(run_folder, folder, config)
        for path in (folder, *folder.iterdir()):
            os.utime(path, (1000 - step, 1000 - step))  # the later, the older

    def report(report: Report) -> None:
        save(report.step, report.write)

    train(
        tiny_model(),
        tiny_pairs(200, seed=1),
        tiny_pairs(40, seed=2),
        config,
        device=torch.device("cpu"),
        group=ALONE,
        report=report,
        save=save,
        stop=lambda: next(steps) == stop_after,
        progress=lambda progress: noted.append(progress.step),
        resume_from=latest,
    )
    return noted


def timeless(facts: dict[str, Any]) -> dict[str, Any]:
    """Without what was measured in seconds."""
    rows = [{key: row[key] for key in row if key != "tokens_per_second"} for row in facts["history"]]
    return {key: facts[key] for key in facts if "seconds" not in key} | {"history": rows}


def test_training_goes_on_from_the_newest_step_and_measures_durations(
    tmp_path: Path, broken_clock: None
) -> None:
    start(tmp_path / "undisturbed")
    folder = tmp_path / "stopped"
    start(folder, stop_after=7)
    assert latest_checkpoint(folder) == folder / checkpoint_name(7)
    noted = start(folder, stop_after=12)
    assert min(noted) > 7
    assert [path.name for path in checkpoint_folders(folder)][-2:] == [
        checkpoint_name(10),
        checkpoint_name(12),
    ]
    start(folder)
    tensors, facts = read_checkpoint(folder / checkpoint_name(20))
    expected_tensors, expected_facts = read_checkpoint(tmp_path / "undisturbed" / checkpoint_name(20))
    assert all(torch.equal(tensors[name], expected) for name, expected in expected_tensors.items())
    assert timeless(facts) == timeless(expected_facts)
    assert 0.0 < facts["seconds"] < DAY
    assert all(0.0 < row["tokens_per_second"] < math.inf for row in facts["history"])


def test_progress_is_noted_and_shown(
    tmp_path: Path, broken_clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "WRITE_SECONDS", 0.0)
    monkeypatch.setattr(terminal, "PLAIN_SECONDS", 0.0)
    output = io.StringIO()
    line, write = terminal.LiveLine(tmp_path, output), terminal.progress_writer(tmp_path)
    for step in (10, 20, 30):
        write(Progress(step, 3000, 4.0, 1.0, 1.0))
        assert json.loads((tmp_path / "progress.json").read_text())["step"] == step
        line._print_news()
    assert output.getvalue().count("\n") == 3


def test_a_late_worker_is_found(tmp_path: Path, broken_clock: None) -> None:
    gave_up = threading.Event()
    Attendance(tmp_path, 1, 2, 3600.0)
    with Attendance(tmp_path, 0, 2, 0.004, gave_up.set) as worker:
        worker.come()
        assert gave_up.wait(60)
    assert late_workers(tmp_path)


def test_the_grace_time_ends(tmp_path: Path, broken_clock: None) -> None:
    Attendance(tmp_path, 0, 1, 3600.0)
    release = threading.Event()
    thread = threading.Thread(target=release.wait, daemon=True)
    thread.start()
    with Stopping(tmp_path, 0.01) as stopping:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(SystemExit, match="143"):
            stopping.wait_for(thread, lambda text: None)
    release.set()
    thread.join()
