"""MLflow's server is away, hangs, fails or is killed: training does not notice, and in the end MLflow has it all."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mlflow import MlflowClient

from mlflow_server import MlflowServer
from passerelle import sending
from passerelle.cli import main
from passerelle.run_log import RunLog
from passerelle.tracking import Curves, num_unsent, open_run
from small_model import write_small_model
from stage_process import until

FINGERPRINT = "0123456789abcdef"
STEPS = list(range(10, 61, 10))
PARAMS = {"training": {"seed": 3, "max_steps": 60}}

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below MLflow warn of one another


@pytest.fixture
def mlflow_server(store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MlflowServer]:
    """Of the test's store; not yet started, and in the environment."""
    server = MlflowServer(store.parent)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def surroundings(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("PASSERELLE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr(sending, "PAUSE_SECONDS", 0.2)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a training writes."""
    folder = tmp_path_factory.mktemp("outputs")
    write_small_model(folder)
    (folder / "plots.csv").write_text("step\n1\n")
    return folder


def rows(steps: list[int]) -> list[dict[str, float]]:
    return [{"step": step, "loss": 9.0 / step, "learning_rate": 0.1} for step in steps]


def begin(log: RunLog) -> None:
    log.log_params(PARAMS)
    log.log_tags({"git.commit": "abc"})
    log.log_text("changed", "code/uncommitted.diff")
    log.log_dataset("training", Path("data/shards/train"), "ab" * 32, {"rows": 7})


def end(log: RunLog, outputs: Path) -> None:
    log.log_rows(rows(STEPS))  # as stage `train` does, from its last checkpoint
    log.log_metrics({"training.steps": 60.0})
    log.log_files(outputs / "plots.csv", "plots")


def wait_until_sent(run_folder: Path) -> None:
    until(lambda: not num_unsent(run_folder))


def sync(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Status and output of `passerelle sync`."""
    capsys.readouterr()
    try:
        main(["sync"])
    except SystemExit as ending:
        return int(ending.code or 0), capsys.readouterr().out
    return 0, capsys.readouterr().out


def check_complete(uri: str, tmp_path: Path) -> list[str]:
    """One run with everything in it, once; returns the states of its models."""
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("corpus")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.info.start_time < run.info.end_time
    assert run.data.params == {"training.seed": "3", "training.max_steps": "60"}
    assert run.data.tags["git.commit"] == "abc"
    assert run.data.metrics["training.steps"] == 60.0
    for key in ("loss", "learning_rate"):
        points = client.get_metric_history(run.info.run_id, key)
        assert sorted(point.step for point in points) == STEPS, key
    assert [found.dataset.digest for found in run.inputs.dataset_inputs] == ["ab" * 8]
    for name, content in (("plots/plots.csv", "step\n1\n"), ("code/uncommitted.diff", "changed")):
        copy = client.download_artifacts(run.info.run_id, name, str(tmp_path))
        assert Path(copy).read_text() == content
    return [str(model.status) for model in client.search_logged_models([experiment.experiment_id])]


def test_a_server_away_at_the_start_in_the_middle_and_at_the_end_loses_nothing(
    mlflow_server: MlflowServer, tmp_path: Path, outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, run_folder = mlflow_server, tmp_path / "runs" / FINGERPRINT
    with open_run(FINGERPRINT, run_folder) as log:
        begin(log)
        curves = Curves(FINGERPRINT, run_folder)
        curves(rows(STEPS[:2]), is_last=False)
        log.drain(600)  # has failed
        server.start()
        wait_until_sent(run_folder)  # no one had to do a thing
        curves(rows(STEPS[2:4]), is_last=False)
        wait_until_sent(run_folder)
        server.send_signal(signal.SIGSTOP)  # it takes connections, and answers none
        curves(rows(STEPS[4:5]), is_last=False)
        log.log_tags({"version.ray": "2"})
        log.drain(600)
        server.send_signal(signal.SIGKILL)  # in the midst of these requests
        curves(rows(STEPS[5:]), is_last=True)
        end(log, outputs)
        log.log_model(outputs / "model", ["We see a boat."])
    status, said = sync(capsys)
    remaining = num_unsent(run_folder)
    assert status == 1
    assert said.startswith(
        f"{FINGERPRINT}: 0 records sent, {remaining} remain: MLflow at {server.uri}: does not"
    )
    server.start()
    status, said = sync(capsys)
    assert (status, said) == (0, f"{FINGERPRINT}: {remaining} records sent\n")
    assert check_complete(server.uri, tmp_path) == ["READY"]
    status, said = sync(capsys)
    assert (status, said.split(":")[0]) == (0, "nothing to send")


class Unwilling(BaseHTTPRequestHandler):
    """Serves nothing: `way` says how."""

    way = ""
    release = threading.Event()

    def do_GET(self) -> None:
        if self.way == "cuts":
            self.connection.shutdown(socket.SHUT_RDWR)
        elif self.way == "hangs" or (self.way == "hangs when asked" and self.path != "/health"):
            self.release.wait()
        elif self.path == "/health":
            self.send_response(200)
            self.end_headers()
        else:
            self.send_response(int(self.way))
            self.end_headers()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *arguments: object) -> None:
        """Nothing: the test's output stays readable."""


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("cuts", "does not answer ("),
        ("hangs", "does not answer (timed out)"),
        ("hangs when asked", "ReadTimeoutError"),
        ("500", "500"),
        ("403", "403"),
    ],
)
def test_a_server_that_serves_nothing_stops_nothing(
    way: str,
    words: str,
    tmp_path: Path,
    outputs: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With MLflow's own limit on a request lowered, and the one for asking whether the server is there."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    if way == "hangs":  # the others are slow where this machine is
        monkeypatch.setattr("passerelle.tracking_address.CONNECT_SECONDS", 1.0)
    monkeypatch.setattr(sending, "PAUSE_SECONDS", 600.0)
    monkeypatch.setattr(Unwilling, "way", way)
    monkeypatch.setattr(Unwilling, "release", threading.Event())
    unwilling = ThreadingHTTPServer(("127.0.0.1", 0), Unwilling)
    threading.Thread(target=unwilling.serve_forever, daemon=True).start()
    run_folder = tmp_path / "runs" / FINGERPRINT
    with monkeypatch.context() as context:
        context.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{unwilling.server_port}")
        try:
            with open_run(FINGERPRINT, run_folder) as log:
                begin(log)
                curves = Curves(FINGERPRINT, run_folder)
                curves(rows(STEPS[:3]), is_last=True)
                end(log, outputs)
        finally:
            Unwilling.release.set()
            unwilling.shutdown()
            unwilling.server_close()
    said = [record.message for record in caplog.records if record.name == "passerelle.sending"]
    assert len(set(said)) == 1, said  # one sentence, of this process and of Ray's
    assert words in said[0]
    assert num_unsent(run_folder) > 0
    assert sync(capsys)[0] == 0  # with the store that is there
    check_complete(os.environ["MLFLOW_TRACKING_URI"], tmp_path)
