"""No library reports to its makers, however the project is started, and what a user opens is not open to others."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from source_imports import ROOT

SWITCHES = {"DVC_NO_ANALYTICS": "1", "MLFLOW_DISABLE_TELEMETRY": "true", "RAY_USAGE_STATS_ENABLED": "0"}
ASKED = """
import json, sys
from pathlib import Path

from dvc.analytics import is_enabled
from dvc.config import Config
from mlflow.cli import server
from mlflow.telemetry.utils import is_telemetry_disabled

said = {"dvc": not is_enabled(), "dvc update": Config.from_cwd(validate=False)["core"].get("check_update") == "false"}
said["mlflow before"] = is_telemetry_disabled()

from passerelle.tracking_address import address_of, client_of

client_of(address_of("0123456789abcdef", Path(sys.argv[1])))
said["mlflow"] = is_telemetry_disabled()
said["mlflow ui"] = {option.name: option.default for option in server.params}["host"]
print(json.dumps(said))
"""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has set nothing; MLflow holds back where a variable names a test or a CI."""
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}


def test_a_stage_started_by_hand_reports_nothing(bare: dict[str, str], tmp_path: Path) -> None:
    environment = bare | {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path / 'mlflow.db'}"}
    done = subprocess.run(
        [sys.executable, "-c", ASKED, str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said.pop("mlflow before") is False  # it would report, had we not said no
    assert said.pop("mlflow ui") == "127.0.0.1"
    assert said == {"dvc": True, "dvc update": True, "mlflow": True}


def test_make_switches_telemetry_off(bare: dict[str, str]) -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "--eval", "show: ; @env", "show"],
        cwd=ROOT,
        env=bare,
        capture_output=True,
        text=True,
        check=True,
    )
    assert dict(line.partition("=")[::2] for line in done.stdout.splitlines()).items() >= SWITCHES.items()


def test_the_image_switches_telemetry_off_and_asks_for_the_token() -> None:
    text = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    found = dict(re.findall(r"\b([A-Z_]+)=(\S+)", text[text.index("\nENV ") :]))
    assert found.items() >= {**SWITCHES, "RAY_AUTH_MODE": "token"}.items()


def test_make_ui_is_for_this_machine_alone(bare: dict[str, str]) -> None:
    done = subprocess.run(
        ["make", "-n", "ui"], cwd=ROOT, env=bare, capture_output=True, text=True, check=True
    )
    assert "mlflow ui" in done.stdout
    assert "host" not in done.stdout  # the default, see above
