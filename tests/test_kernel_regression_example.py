"""The example `kernel_regression`, from end to end in a copy: what it writes, records and leaves alone."""

import ast
import csv
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dvc.repo import Repo
from mlflow import MlflowClient
from numpy.typing import NDArray
from ruamel.yaml import YAML

from passerelle.params_file import load_params
from source_imports import PACKAGE, ROOT, imported_names, own_imports, syntax_tree

EXAMPLE = ROOT / "examples/kernel_regression"
IN_COPY = EXAMPLE.relative_to(ROOT)
yaml = YAML()
PIPELINE = yaml.load((EXAMPLE / "dvc.yaml").read_text(encoding="utf-8"))
STAGES = PIPELINE["stages"]
ESTIMATORS = ("average_pooling", "kernel", "trained_kernel")

# From libraries below DVC and MLflow, about their own use of one another.
pytestmark = pytest.mark.filterwarnings("ignore")


def imported_files(script: Path) -> set[Path]:
    """Files of this project that running the script imports, those beside it too."""
    found: set[Path] = set()
    waiting = {script}
    while waiting:
        path = waiting.pop()
        found.add(path)
        beside = (
            {EXAMPLE / f"{name}.py" for name in imported_names(path)} if path.parent == EXAMPLE else set()
        )
        waiting |= (own_imports(path) | {path for path in beside if path.is_file()}) - found
    return found - {script}


def run(*command: str, folder: Path) -> str:
    """What the command prints, with the copy's code and its own MLflow database."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "DVC_"))
    }
    environment.pop("PASSERELLE_RUNS", None)
    environment |= {"PYTHONPATH": str(folder / "src"), "DVC_NO_ANALYTICS": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def repro(folder: Path) -> str:
    return run(sys.executable, "-m", "dvc", "repro", str(IN_COPY / "dvc.yaml"), folder=folder)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which the example has run once."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("pyproject.toml", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    unneeded = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(PACKAGE, folder / "src/passerelle", ignore=unneeded)
    (folder / IN_COPY).mkdir(parents=True)
    for path in EXAMPLE.iterdir():
        if path.is_file() and path.name != "dvc.lock":
            shutil.copy(path, folder / IN_COPY)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    Repo.init(str(folder)).close()
    repro(folder)
    return folder


@pytest.fixture(scope="module")
def example(project: Path) -> Path:
    return project / IN_COPY


def table(path: Path) -> dict[str, NDArray[np.float64]]:
    """The columns of a CSV file."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_the_code_it_imports(stage: str) -> None:
    files = imported_files(EXAMPLE / f"{stage}.py")
    beside = sorted(path.name for path in files if path.parent == EXAMPLE)
    ours = sorted(f"../../{path.relative_to(ROOT)}" for path in files if path.parent != EXAMPLE)
    lines = [f"{stage}.py", *beside, *ours]
    listed = [dep for dep in STAGES[stage]["deps"] if dep.endswith(".py")]
    assert listed == lines, f"{stage}.deps must begin with\n" + "\n".join(f"      - {line}" for line in lines)


def test_the_data_are_those_of_the_chapter(example: Path) -> None:
    train, test = table(example / "data/train.csv"), table(example / "data/test.csv")
    assert len(train["x"]) == len(test["x"]) == 50
    assert (np.diff(train["x"]) > 0).all()
    assert 0 <= train["x"][0] < 0.5
    assert 4.5 < train["x"][-1] < 5
    np.testing.assert_allclose(test["x"], np.arange(0, 5, 0.1))
    np.testing.assert_allclose(test["y"], [2 * np.sin(x) + x**0.8 for x in test["x"]])
    noise = train["y"] - (2 * np.sin(train["x"]) + train["x"] ** 0.8)
    assert abs(noise.mean()) < 3 * 0.5 / 50**0.5
    assert 0.35 < noise.std() < 0.65


def test_the_metrics_are_the_errors_of_the_three_estimators(example: Path) -> None:
    train, test = table(example / "data/train.csv"), table(example / "data/test.csv")
    metrics = json.loads((example / "metrics/fit.json").read_text(encoding="utf-8"))
    for name, w in zip(ESTIMATORS, (0.0, 1.0, metrics["w"]), strict=True):
        kernels = np.exp(-(((test["x"][:, None] - train["x"]) * w) ** 2) / 2)
        estimates = (kernels * train["y"]).sum(1) / kernels.sum(1)
        expected = ((estimates - test["y"]) ** 2).mean()
        assert metrics[f"mse_{name}"] == pytest.approx(expected, abs=2e-6)
        np.testing.assert_allclose(table(example / "plots/curves.csv")[name], estimates, atol=1e-4)
    assert metrics["mse_trained_kernel"] < metrics["mse_kernel"] < metrics["mse_average_pooling"]
    assert metrics.keys() == {*(f"mse_{name}" for name in ESTIMATORS), "w"}


def test_the_loss_falls_over_the_epochs(example: Path) -> None:
    losses = table(example / "plots/loss.csv")
    assert losses["epoch"].tolist() == [1, 2, 3, 4, 5]
    assert (np.diff(losses["loss"]) < 0).all()


def test_what_is_drawn_is_an_output_and_not_within_one() -> None:
    """As for the other pipelines (tests/test_dvc_pipeline.py)."""
    outs = {out for stage in PIPELINE["stages"].values() for out in stage["outs"]}
    drawn = [
        entry if isinstance(entry, str) else next(iter(entry.values()))["y"] for entry in PIPELINE["plots"]
    ]
    assert len(drawn) > 2
    assert outs.issuperset(path for one in drawn for path in ([one] if isinstance(one, str) else one))


def test_dvc_shows_curves_losses_and_pictures(project: Path) -> None:
    run(sys.executable, "-m", "dvc", "plots", "show", str(IN_COPY / "dvc.yaml"), "-o", "page", folder=project)
    page = (project / "page/index.html").read_text(encoding="utf-8")
    for text in ("Three estimates and the true function", "Sum of squared errors", *ESTIMATORS):
        assert text in page
    pictures = {path.name for path in (project / "page").rglob("*.png")}
    assert {name.split("plots_")[-1] for name in pictures} == {
        "curves.png",
        *(f"weights_{name}.png" for name in ESTIMATORS),
    }
    shutil.rmtree(project / "page")


def test_mlflow_has_parameters_scores_curve_and_pictures(project: Path) -> None:
    store = f"sqlite:///{project / 'mlflow.db'}"
    client = MlflowClient(store, store)
    experiment = client.get_experiment_by_name("kernel_regression")
    (recorded,) = client.search_runs([experiment.experiment_id])
    assert recorded.info.status == "FINISHED"
    assert recorded.data.params == {
        "fit.initial_w": "1.0",
        "fit.learning_rate": "0.5",
        "fit.num_epochs": "5",
    }
    metrics = json.loads((project / IN_COPY / "metrics/fit.json").read_text(encoding="utf-8"))
    assert recorded.data.metrics.items() >= metrics.items()
    curve = client.get_metric_history(recorded.info.run_id, "loss")
    losses = table(project / IN_COPY / "plots/loss.csv")["loss"]
    assert [(point.step, point.value) for point in curve] == list(enumerate(losses, start=1))
    artifacts = Path(recorded.info.artifact_uri)
    found = {path.name for path in artifacts.rglob("*.png")}
    assert found == {"curves.png", *(f"{name}.png" for name in ESTIMATORS)}
    (dataset_input,) = recorded.inputs.dataset_inputs
    assert json.loads(dataset_input.dataset.profile) == {"rows": 50}


def test_a_second_repro_does_nothing(project: Path) -> None:
    lock = (project / IN_COPY / "dvc.lock").read_bytes()
    assert "Running stage" not in repro(project)
    assert (project / IN_COPY / "dvc.lock").read_bytes() == lock


def test_git_sees_the_sources_the_metrics_and_the_lock_alone(project: Path) -> None:
    seen = run("git", "status", "--porcelain", "-uall", "--", "examples", folder=project)
    sources = {path.name for path in EXAMPLE.iterdir() if path.is_file()} | {"dvc.lock"}
    expected = {f"?? {IN_COPY}/{name}" for name in sources | {"metrics/fit.json"}}
    assert set(seen.splitlines()) == expected


@pytest.fixture
def params_file(example: Path) -> Iterator[Path]:
    path = example / "params.yaml"
    content = path.read_bytes()
    yield path
    path.write_bytes(content)


def change(path: Path, key: str, value: Any) -> None:
    section, name = key.split(".")
    content = yaml.load(path.read_text(encoding="utf-8"))
    content[section][name] = value
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(content, file)


@pytest.mark.parametrize(
    ("key", "value", "stage"), [("data.noise", 0.1, "data"), ("fit.num_epochs", 2, "fit")]
)
def test_a_changed_knob_makes_its_own_stage_stale(
    params_file: Path, key: str, value: Any, stage: str
) -> None:
    change(params_file, key, value)
    with chdir(params_file.parents[2]), Repo() as repo:
        assert {name.split(":")[-1] for name in repo.status()} == {stage}


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("data.num_points", 1, "data.num_points: input should be greater than or equal to 2, but is 1"),
        ("data.test_step", 6.0, "data: test_step must be at most highest=5.0, but is 6.0"),
        ("fit.initial_w", 0.0, "fit.initial_w: input should be greater than 0, but is 0.0"),
        ("fit.epochs", 5, "fit.epochs: unknown key; did you mean num_epochs?"),
    ],
)
def test_a_fault_in_the_parameters_is_one_line(params_file: Path, key: str, value: Any, line: str) -> None:
    change(params_file, key, value)
    settings = runpy.run_path(str(EXAMPLE / "settings.py"))
    for stage in ("DataParams", "FitParams"):
        with pytest.raises(ValueError, match=rf"params\.yaml: {re.escape(line)}[^\n]*$"):
            load_params(settings[stage], params_file, whole=settings["Params"])


def test_text_that_is_no_yaml_is_one_line(params_file: Path) -> None:
    params_file.write_text("data: [", encoding="utf-8")
    settings = runpy.run_path(str(EXAMPLE / "settings.py"))
    with pytest.raises(ValueError, match=r"params\.yaml: not valid YAML: [^\n]*$"):
        load_params(settings["FitParams"], params_file, whole=settings["Params"])


@pytest.mark.parametrize("stage", STAGES)
def test_the_help_of_a_stage_says_what_it_does_and_where_its_settings_are(stage: str) -> None:
    text = ast.get_docstring(syntax_tree(EXAMPLE / f"{stage}.py"))
    assert text is not None
    assert text.startswith(f"Stage `{stage}`: ")
    assert f"section `{stage}` of params.yaml" in text
    assert list(STAGES[stage]["params"]) == [stage]
