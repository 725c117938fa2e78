"""One MLflow run for each model: found again, complete, and never in the way."""

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from passerelle.run_log import LONGEST_PARAM, flattened
from passerelle.tracking import Curves, open_run
from passerelle.tracking_address import address_of, without_password
from small_model import write_small_model
from unanswered import SECRET

FINGERPRINT = "0123456789abcdef"
ROWS = [{"step": step, "loss": 9.0 / step, "learning_rate": 0.1} for step in (10, 20, 30, 40)]

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below MLflow warn of one another


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / FINGERPRINT


def client(store: Path) -> MlflowClient:
    return MlflowClient(f"sqlite:///{store}", f"sqlite:///{store}")


def recorded(store: Path) -> list[Run]:
    """All runs of the store."""
    experiments = [experiment.experiment_id for experiment in client(store).search_experiments()]
    return list(client(store).search_runs(experiments))


def curve(store: Path, key: str) -> list[tuple[int, float]]:
    (run,) = recorded(store)
    return [(point.step, point.value) for point in client(store).get_metric_history(run.info.run_id, key)]


def test_a_run_is_found_again_by_its_id(
    store: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", name)  # wherever it is looked for
        with open_run(FINGERPRINT, run_folder) as log:
            log.log_tags({name: "yes"})
    (run,) = recorded(store)
    assert json.loads((run_folder / "mlflow.json").read_text())["run_id"] == run.info.run_id
    assert {"first", "second"} <= run.data.tags.keys()
    assert run.data.tags["passerelle.fingerprint"] == FINGERPRINT


def test_a_run_is_found_again_by_its_fingerprint(store: Path, run_folder: Path, tmp_path: Path) -> None:
    for folder in (run_folder, tmp_path / "elsewhere"):  # as after a clone, or without .runs
        with open_run(FINGERPRINT, folder):
            pass
    assert len(recorded(store)) == 1
    with open_run("another", tmp_path / "another"):
        pass
    assert len(recorded(store)) == 2


def test_a_deleted_run_is_made_anew(store: Path, run_folder: Path) -> None:
    with open_run(FINGERPRINT, run_folder):
        pass
    (run,) = recorded(store)
    client(store).delete_run(run.info.run_id)
    with open_run(FINGERPRINT, run_folder):
        pass
    (new,) = recorded(store)
    assert new.info.run_id != run.info.run_id


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, "FINISHED"),
        (ValueError("no"), "FAILED"),
        (SystemExit(130), "KILLED"),
        (KeyboardInterrupt(), "KILLED"),
    ],
)
def test_the_status_tells_how_the_stage_ended(
    store: Path, run_folder: Path, error: BaseException | None, status: str
) -> None:
    with suppress(ValueError, SystemExit, KeyboardInterrupt), open_run(FINGERPRINT, run_folder) as log:
        log.drain(30.0)
        assert recorded(store)[0].info.status == "RUNNING"
        if error is not None:
            raise error
    assert recorded(store)[0].info.status == status


def test_curves_have_neither_gaps_nor_duplicates(store: Path, run_folder: Path) -> None:
    with open_run(FINGERPRINT, run_folder):
        curves = Curves(FINGERPRINT, run_folder)
        curves(ROWS[:1], is_last=False)
        curves(ROWS[1:2], is_last=True)
        again = Curves(FINGERPRINT, run_folder)  # that of a second start, which begins with all rows
        again(ROWS[:3], is_last=True)
        curves(ROWS[:1], is_last=True)
    with open_run(FINGERPRINT, run_folder) as log:
        log.log_rows(ROWS)
    assert curve(store, "loss") == [(row["step"], row["loss"]) for row in ROWS]
    assert len(curve(store, "learning_rate")) == 4


def test_many_rows_are_all_sent(store: Path, run_folder: Path) -> None:
    rows = [
        {"step": step, "loss": 1.0, "a": 2.0, "b": 3.0} for step in range(1, 702)
    ]  # more than one request
    with open_run(FINGERPRINT, run_folder) as log:
        log.log_rows(rows)
    assert [step for step, _ in curve(store, "b")] == list(range(1, 702))


def test_numbers_that_are_none_are_left_out(store: Path, run_folder: Path) -> None:
    with open_run(FINGERPRINT, run_folder) as log:
        log.log_metrics({"fine": 1.5, "infinite": math.inf, "none": math.nan})
    assert recorded(store)[0].data.metrics == {"fine": 1.5}


def test_parameters_are_flat_and_long_ones_are_cut() -> None:
    values = {"training": {"seed": 3, "patience": None}, "text": "x" * 501, "fits": "y" * LONGEST_PARAM}
    flat = dict(flattened(values))
    assert flat["training.seed"] == "3"
    assert flat["training.patience"] == "None"
    assert flat["fits"] == "y" * LONGEST_PARAM
    assert len(flat["text"]) == LONGEST_PARAM
    assert flat["text"].endswith("x... (cut, 501 characters)")


def test_a_parameter_with_a_new_value_becomes_a_tag(store: Path, run_folder: Path) -> None:
    for beam_size in (5, 7):
        with open_run(FINGERPRINT, run_folder) as log:
            log.log_params({"decoding": {"beam_size": beam_size}, "kept": "1"})
    (run,) = recorded(store)
    assert run.data.params == {"decoding.beam_size": "5", "kept": "1"}
    assert run.data.tags["decoding.beam_size"] == "7"
    assert "kept" not in run.data.tags


def test_data_are_named_by_their_content(store: Path, run_folder: Path) -> None:
    for _ in range(2):  # a repeated stage names them once
        with open_run(FINGERPRINT, run_folder) as log:
            log.log_dataset("training", Path("data/shards/train"), "ab" * 32, {"rows": 7})
    (dataset_input,) = recorded(store)[0].inputs.dataset_inputs
    assert dataset_input.dataset.digest == "ab" * 8
    assert dataset_input.dataset.name == "corpus/train"
    assert json.loads(dataset_input.dataset.profile) == {"rows": 7}
    assert {tag.value for tag in dataset_input.tags} == {"training"}


def test_files_lie_beside_the_database_and_nowhere_else(
    store: Path, run_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "loss.csv").write_text("step\n1\n")
    with open_run(FINGERPRINT, run_folder) as log:
        log.log_files(tmp_path / "plots", "curves")
        log.log_files(tmp_path / "plots" / "loss.csv", "one")
        log.log_text("changed", "code/uncommitted.diff")
    (run,) = recorded(store)
    artifacts = Path(run.info.artifact_uri)
    assert artifacts.is_relative_to(tmp_path / "mlartifacts")
    found = {path.relative_to(artifacts).as_posix() for path in artifacts.rglob("*") if path.is_file()}
    assert found == {"curves/loss.csv", "one/loss.csv", "code/uncommitted.diff"}
    assert list(Path.cwd().iterdir()) == []


def test_a_server_that_does_not_answer_stops_nothing(
    run_folder: Path, dead_server: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", dead_server)
    with open_run(FINGERPRINT, run_folder) as log:
        log.log_metrics({"bleu": 41.0})
        log.log_rows(ROWS)
    (message,) = [record.message for record in caplog.records if record.name == "passerelle.sending"]
    assert "MLflow at http://127.0.0.1" in message
    assert "does not answer" in message
    assert "mlflow-unsent.jsonl and sent later" in message
    kept = (run_folder / "mlflow-unsent.jsonl").read_text()
    assert [json.loads(line)["what"] for line in kept.splitlines()] == ["status", "metrics", "rows", "status"]
    assert SECRET not in caplog.text + kept


def test_what_was_not_sent_is_sent_when_the_server_answers(
    store: Path, run_folder: Path, dead_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = f"sqlite:///{store}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", dead_server)
    with open_run(FINGERPRINT, run_folder) as log:
        log.log_metrics({"bleu": 41.0})
        log.log_rows(ROWS)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", alive)
    with open_run(FINGERPRINT, run_folder) as log:
        log.log_metrics({"chrf": 62.0})
    (run,) = recorded(store)
    assert run.data.metrics["bleu"] == 41.0
    assert run.data.metrics["chrf"] == 62.0
    assert [step for step, _ in curve(store, "loss")] == [10, 20, 30, 40]
    assert run.info.status == "FINISHED"
    assert not (run_folder / "mlflow-unsent.jsonl").exists()


def test_a_refusal_is_told_and_does_not_end_the_recording(
    store: Path, run_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_run(FINGERPRINT, run_folder) as log:
        log.log_tags({"what/ever?": "a name that MLflow refuses"})
        log.log_metrics({"bleu": 41.0})
    assert "MLflow at sqlite:///" in caplog.text
    assert recorded(store)[0].data.metrics == {"bleu": 41.0}


def test_the_experiment_is_named_after_the_working_folder(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path.parent))
    assert address_of(FINGERPRINT, run_folder).experiment == tmp_path.name
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    assert address_of(FINGERPRINT, run_folder).experiment == "passerelle"
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    assert address_of(FINGERPRINT, run_folder).experiment == "mine"


def test_a_password_is_never_shown(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"https://ada:{SECRET}@tracking.example/path")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", SECRET)
    assert SECRET not in repr(address_of(FINGERPRINT, run_folder))
    text = without_password(f"no answer from https://ada:{SECRET}@a.example:80/x and postgresql://b:p@c/d")
    assert text == "no answer from https://a.example:80/x and postgresql://c/d"


def test_the_recorded_model_translates(store: Path, run_folder: Path, tmp_path: Path) -> None:
    import mlflow

    model_folder = write_small_model(tmp_path)
    sentences = ["We see a boat.", "They hide!"]
    for _ in range(2):  # a repeated stage keeps the model it has
        with open_run(FINGERPRINT, run_folder) as log:
            log.log_model(model_folder, sentences)
    (run,) = recorded(store)
    (output,) = run.outputs.model_outputs
    assert run.info.status == "FINISHED"
    mlflow.set_tracking_uri(f"sqlite:///{store}")
    model: Any = mlflow.pyfunc.load_model(f"models:/{output.model_id}")
    assert "string" in str(model.metadata.signature.inputs)
    answers = model.predict(sentences)
    assert len(answers) == 2
    assert all(isinstance(answer, str) for answer in answers)
