"""An MLflow server that takes a request and never answers holds up neither a step, nor a report, nor the end."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from passerelle import run_log, tracking
from passerelle.mlflow_run import MlflowRun
from passerelle.tracking import Curves, num_unsent, open_run
from passerelle.training.group import ALONE
from passerelle.training.loop import train
from passerelle.training.ray_train import _controller_callback
from tiny import tiny_config, tiny_model, tiny_pairs

FINGERPRINT = "0123456789abcdef"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What a server was asked that answers nothing until the test is over; waits for its end are cut to nothing."""
    asked: list[Any] = []
    release = threading.Event()

    def perform(self: MlflowRun, operation: Any) -> None:
        asked.append(operation)
        release.wait()

    monkeypatch.setattr(MlflowRun, "perform", perform)
    monkeypatch.setattr(tracking, "CURVES_SECONDS", 0.01)
    monkeypatch.setattr(run_log, "MOST_SECONDS", 0.01)
    yield asked
    release.set()


def test_training_reports_to_its_end_while_mlflow_answers_nothing(
    asked: list[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Would anything wait for the answer, the test would never end."""
    reported: list[int] = []
    with open_run(FINGERPRINT, tmp_path) as log:
        log.log_params({"training": {"seed": 3}})
        callback = _controller_callback(tmp_path, Curves(FINGERPRINT, tmp_path))

        def report(report: Any) -> None:
            metrics = {"rows": report.history, "is_finished": report.step == 12}
            callback.after_report(None, [metrics], None)  # as Ray's controller calls it
            reported.append(report.step)

        train(
            tiny_model(),
            tiny_pairs(200, seed=1),
            tiny_pairs(40, seed=2),
            tiny_config(max_steps=12),
            device=torch.device("cpu"),
            group=ALONE,
            report=report,
            save=lambda step, write: None,
            stop=lambda: False,
            progress=lambda progress: None,
        )
    assert reported == [3, 6, 9, 12]
    assert len(asked) == 1  # and that was never answered
    assert "what it misses is kept" in caplog.text
    kept = [path.read_text() for path in sorted((tmp_path / "mlflow-unsent").glob("*.json"))]
    assert num_unsent(tmp_path) == len(kept)
    assert sum('"what": "rows"' in text for text in kept) == 4
    assert '"FINISHED"' in kept[-1]
