"""One MLflow run for each model: found again, complete, and never in the way."""

import json
import math
import shutil
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from passerelle.run_log import LONGEST_PARAM, flattened
from passerelle.tracking import Curves, num_unsent, open_run, send_unsent
from passerelle.tracking_address import address_of, check_answers, without_password
from passerelle.unsent import keep, kept_files, unsent_folder
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


def test_a_row_that_lacks_a_number_is_not_sent_again(store: Path, run_folder: Path) -> None:
    rows = [{"step": 1, "learning_rate": 0.1}, {"step": 2, "learning_rate": 0.1, "loss": 2.0}]
    for _ in range(2):
        with open_run(FINGERPRINT, run_folder) as log:
            log.log_rows(rows)
    assert [step for step, _ in curve(store, "learning_rate")] == [1, 2]
    assert [step for step, _ in curve(store, "loss")] == [2]


def test_a_clock_put_back_loses_nothing(
    store: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hour, rows in ((5, ROWS[:2]), (3, ROWS)):
        monkeypatch.setattr("time.time", lambda hour=hour: 1_700_000_000.0 + 3600 * hour)
        with open_run(FINGERPRINT, run_folder) as log:
            log.log_rows(rows)
            log.log_metrics({"test.bleu": float(hour), "test.same": 1.0})
    assert sorted(step for step, _ in curve(store, "loss")) == [10, 20, 30, 40]
    (run,) = recorded(store)
    assert run.data.metrics["loss"] == 9.0 / 40
    assert (run.data.metrics["test.bleu"], run.data.metrics["test.same"]) == (3.0, 1.0)


def test_what_is_done_twice_after_a_crash_is_there_once(
    store: Path, run_folder: Path, tmp_path: Path, dead_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loss.csv").write_text("step\n1\n")
    with monkeypatch.context() as context:
        context.setenv("MLFLOW_TRACKING_URI", dead_server)
        with open_run(FINGERPRINT, run_folder) as log:
            log.log_params({"seed": 3})
            log.log_rows(ROWS)
            log.log_metrics({"bleu": 41.0})
            log.log_dataset("training", Path("data/shards/train"), "ab" * 32, {"rows": 7})
            log.log_files(tmp_path / "loss.csv", "plots")
            log.log_text("changed", "code/uncommitted.diff")
    kept = unsent_folder(run_folder)
    copy = shutil.copytree(kept, tmp_path / "copy")
    for _ in range(2):  # killed after each was done, before that was noted
        shutil.copytree(copy, kept, dirs_exist_ok=True)
        assert send_unsent(run_folder, pytest.fail) == (8, 0)
    (run,) = recorded(store)
    assert run.info.status == "FINISHED"
    assert (run.data.params, len(run.inputs.dataset_inputs)) == ({"seed": "3"}, 1)
    assert "seed" not in run.data.tags
    for key, steps in (("loss", [10, 20, 30, 40]), ("bleu", [0])):
        assert [step for step, _ in curve(store, key)] == steps


def test_what_was_kept_goes_into_the_experiment_and_time_of_its_stage(
    store: Path, run_folder: Path, tmp_path: Path, dead_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        context.setenv("MLFLOW_TRACKING_URI", dead_server)
        context.setenv("DVC_EXP_NAME", "lame-duck")
        context.setattr("time.time", lambda: 1_700_000_000.0)
        with open_run(FINGERPRINT, run_folder):
            pass
    monkeypatch.chdir(tmp_path)  # elsewhere, and later
    send_unsent(run_folder, pytest.fail)
    (run,) = recorded(store)
    experiment = client(store).get_experiment(run.info.experiment_id)
    assert (experiment.name, run.info.run_name) == ("corpus", "lame-duck")
    assert (run.info.start_time, run.info.end_time) == (1_700_000_000_000, 1_700_000_000_000)


def test_files_that_are_gone_or_others_by_then_are_said_and_left_out(
    store: Path, run_folder: Path, tmp_path: Path, dead_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone.csv").write_text("1")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with monkeypatch.context() as context:
        context.setenv("MLFLOW_TRACKING_URI", dead_server)
        with open_run(FINGERPRINT, run_folder) as log:
            log.log_files(tmp_path / "gone.csv", "plots")
            log.log_model(tmp_path / "model", ["We see a boat."])
            log.log_metrics({"bleu": 41.0})
    (tmp_path / "gone.csv").unlink()
    (tmp_path / "model" / "config.json").write_text('{"of": "another run"}')
    said: list[str] = []
    assert send_unsent(run_folder, said.append) == (3, 2)
    assert "gone.csv is gone before it could be sent; left out" in said[0]
    assert "model has changed before it could be sent; left out" in said[1]
    assert recorded(store)[0].data.metrics == {"bleu": 41.0}


def test_a_record_of_an_unknown_kind_is_said_and_left_out(store: Path, run_folder: Path) -> None:
    keep(unsent_folder(run_folder), {"what": "connect"})
    said: list[str] = []
    assert send_unsent(run_folder, said.append) == (0, 1)
    assert "a record of an unknown kind, 'connect'; left out" in said[0]


def test_a_damaged_note_of_the_run_is_said_and_the_run_found_by_its_tag(
    store: Path, run_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with open_run(FINGERPRINT, run_folder):
            pass
        (run_folder / "mlflow.json").write_text("{")
    assert len(recorded(store)) == 1
    assert "mlflow.json: cannot be read; the run is looked for by its fingerprint" in caplog.text


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
    assert "mlflow-unsent and sent later" in message
    kept = [path.read_text() for path in kept_files(unsent_folder(run_folder))]
    assert [json.loads(text)["what"] for text in kept] == ["status", "metrics", "rows", "status"]
    assert SECRET not in caplog.text + "".join(kept)


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
    assert num_unsent(run_folder) == 0


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
    assert address_of(FINGERPRINT, run_folder).uri == "https://tracking.example/path"
    text = without_password(f"no answer from https://ada:{SECRET}@a.example:80/x and postgresql://b:p@c/d")
    assert text == "no answer from https://a.example:80/x and postgresql://c/d"
    assert without_password("at mysql://b:p/q@c/d?password=p: no") == "at mysql://c/d?… no"


def test_a_login_in_the_address_is_handed_to_mlflow_beside_it(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://ada:open%2Fsesame@tracking.example/path")
    environment = address_of(FINGERPRINT, run_folder).environment
    assert environment["MLFLOW_TRACKING_USERNAME"] == "ada"
    assert environment["MLFLOW_TRACKING_PASSWORD"] == "open/sesame"
    assert "MLFLOW_TRACKING_URI" not in environment


def test_whether_a_server_answers_is_asked_without_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Asked(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers['Authorization']}")
            self.send_response(401)  # an answer
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Nothing: the test's output stays readable."""

    monkeypatch.setenv("no_proxy", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), Asked) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        check_answers(f"http://{SECRET}@127.0.0.1:{server.server_port}/mlflow/")
        server.shutdown()
        thread.join()
    assert asked == ["/mlflow/health None"]


def test_the_recorded_model_translates(store: Path, run_folder: Path, tmp_path: Path) -> None:
    import mlflow

    model_folder = write_small_model(tmp_path)
    sentences = ["We see a boat.", "They hide!"]
    with open_run(FINGERPRINT, run_folder) as log:
        log.drain(60.0)
        (run,) = recorded(store)  # and a process that died while it sent the model:
        client(store).create_logged_model(run.info.experiment_id, "model", source_run_id=run.info.run_id)
    for _ in range(2):  # a repeated stage keeps the model it has
        with open_run(FINGERPRINT, run_folder) as log:
            log.log_model(model_folder, sentences)
    (run,) = recorded(store)
    (output,) = run.outputs.model_outputs
    (found,) = client(store).search_logged_models([run.info.experiment_id])
    assert (found.model_id, str(found.status)) == (output.model_id, "READY")
    assert run.info.status == "FINISHED"
    mlflow.set_tracking_uri(f"sqlite:///{store}")
    model: Any = mlflow.pyfunc.load_model(f"models:/{output.model_id}")
    assert "string" in str(model.metadata.signature.inputs)
    answers = model.predict(sentences)
    assert len(answers) == 2
    assert all(isinstance(answer, str) for answer in answers)
