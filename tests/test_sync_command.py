"""`passerelle sync` sends what MLflow missed, and says of each run what became of it."""

import json
from pathlib import Path

import pytest

from passerelle.cli import main
from passerelle.run_folder import lock_run
from passerelle.tracking import num_unsent, open_run
from passerelle.unsent import kept_files, unsent_folder
from unanswered import SECRET

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below MLflow warn of one another


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PASSERELLE_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def two_runs(runs: Path, store: Path, dead_server: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Their stages ended while the server was away: three records of each."""
    with monkeypatch.context() as context:
        context.setenv("MLFLOW_TRACKING_URI", dead_server)
        for name in ("aaaa", "bbbb"):
            with open_run(name, runs / name) as log:
                log.log_metrics({"bleu": 41.0})
    return runs


def sync(capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Status and lines."""
    try:
        main(["sync"])
    except SystemExit as ending:
        return int(ending.code or 0), capsys.readouterr().out.splitlines()
    return 0, capsys.readouterr().out.splitlines()


def test_where_nothing_waits_it_says_so(runs: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"nothing to send: MLflow has all records of the runs in {runs}"
    assert sync(capsys) == (0, [words])
    with open_run("aaaa", runs / "aaaa"):
        pass
    assert sync(capsys) == (0, [words])


def test_every_run_is_sent(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sync(capsys) == (0, ["aaaa: 3 records sent", "bbbb: 3 records sent"])
    assert sync(capsys)[0] == 0
    assert num_unsent(two_runs / "aaaa") == 0


def test_what_remains_is_said_with_the_reason(
    two_runs: Path, dead_server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", dead_server)
    status, lines = sync(capsys)
    assert (status, len(lines)) == (1, 2)
    assert lines[0].startswith("aaaa: 0 records sent, 3 remain: MLflow at http://127.0.0.1:")
    assert "does not answer" in lines[0]
    assert SECRET not in "".join(lines)
    assert num_unsent(two_runs / "aaaa") == 3


def test_a_run_that_is_being_trained_is_left_alone(
    two_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with lock_run(two_runs / "aaaa"):
        status, lines = sync(capsys)
    assert status == 1
    assert lines[0].startswith(f"aaaa: 3 remain: {two_runs / 'aaaa'}: process ")
    assert lines[1] == "bbbb: 3 records sent"


def test_what_cannot_be_sent_at_all_is_left_out(
    two_runs: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    first, second, _ = kept_files(unsent_folder(two_runs / "aaaa"))
    first.write_text('{"what": "status", "sta')  # torn
    second.write_text(json.dumps({"what": "files", "path": "/no/such/file", "folder": "a", "sha256": ""}))
    status, lines = sync(capsys)
    assert status == 0
    assert lines[0].startswith("aaaa: 1 record sent, 1 left out: MLflow at sqlite:///")
    assert lines[0].endswith("/no/such/file is gone before it could be sent; left out")
    assert f"{first}: damaged" in caplog.text
