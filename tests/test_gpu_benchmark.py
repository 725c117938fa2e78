"""The GPU benchmark in its small form on the CPU, so that it runs when a GPU comes; no time is judged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, dict[str, float]]]:
    output = tmp_path_factory.mktemp("gpu") / "gpu.json"
    options = ["--device", "cpu", "--small", "--rounds", "1", "--output", str(output)]
    command = [sys.executable, str(ROOT / "benchmarks/gpu.py"), *options]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout) == json.loads(output.read_text(encoding="utf-8"))
    return json.loads(finished.stdout)


def test_loss_and_gradient_are_those_of_float64(result: dict[str, dict[str, dict[str, float]]]) -> None:
    assert {name: one["is right"] for name, one in result["correctness"].items()} == {
        "float32": True,
        "bfloat16": True,
    }


def test_every_system_takes_the_steps_of_every_size(result: dict[str, dict[str, dict[str, float]]]) -> None:
    sizes = [name for name in result if "micro-batch" in name]
    assert len(sizes) == 2
    for size in sizes:
        assert {"ours", "ours, Muon"} <= result[size].keys()
        for system in ("ours", "ours, Muon"):
            assert result[size][system]["target tokens a second"] > 0


def test_two_workers_take_the_steps_of_one(result: dict[str, float]) -> None:
    assert result["2 workers to 1"] > 0
