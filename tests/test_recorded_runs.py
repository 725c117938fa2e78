"""What was recorded of a run is read back, and what is not there is said."""

from pathlib import Path

import pytest

from passerelle.recorded_runs import artifact_file, read_run
from passerelle.tracking import open_run
from unanswered import SECRET

FINGERPRINT = "0123456789abcdef"

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below MLflow warn of one another


def record(folder: Path, bleu: float) -> None:
    (folder / "translations.jsonl").write_text("{}\n", encoding="utf-8")
    with open_run(FINGERPRINT, folder / "runs" / FINGERPRINT) as log:
        log.log_params({"model": {"d_model": 192}})
        log.log_tags({"git.commit": "abc"})
        log.log_metrics({"test.bleu": bleu})
        log.log_files(folder / "translations.jsonl", "evaluation")


@pytest.mark.parametrize("by_id", [True, False])
def test_a_run_is_read_by_its_id_or_fingerprint(store: Path, tmp_path: Path, by_id: bool) -> None:
    record(tmp_path, 12.5)
    run = read_run(FINGERPRINT)
    found = read_run(run.run_id if by_id else FINGERPRINT)
    assert found == run
    assert (found.experiment, found.params["model.d_model"]) == ("corpus", "192")
    assert (found.tags["git.commit"], found.metrics["test.bleu"]) == ("abc", 12.5)


def test_a_file_of_a_run_is_copied(store: Path, tmp_path: Path) -> None:
    record(tmp_path, 12.5)
    (tmp_path / "copies").mkdir()
    path = artifact_file(read_run(FINGERPRINT).run_id, "evaluation/translations.jsonl", tmp_path / "copies")
    assert path.read_text() == "{}\n"
    assert path.is_relative_to(tmp_path / "copies")


def test_a_run_that_is_not_there_is_said_with_those_that_are(store: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"feed: no run with this id or fingerprint .*; it holds no run at all"
    ):
        read_run("feed")
    record(tmp_path, 12.5)
    with pytest.raises(ValueError, match=rf"it holds {read_run(FINGERPRINT).run_id}$"):
        read_run("it's")


def test_looking_for_a_run_makes_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'none.db'}")
    with pytest.raises(ValueError, match=r"none.db: no such database, so nothing is recorded here; set"):
        read_run(FINGERPRINT)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_there_is_said(store: Path, tmp_path: Path) -> None:
    record(tmp_path, 12.5)
    run_id = read_run(FINGERPRINT).run_id
    with pytest.raises(ValueError, match=rf"run {run_id} in .*: no artifact evaluation/other.txt"):
        artifact_file(run_id, "evaluation/other.txt", tmp_path)


def test_a_server_that_does_not_answer_is_said_without_its_password(
    dead_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", dead_server)
    with pytest.raises(ValueError, match=r"does not answer .*; set MLFLOW_TRACKING_URI, or start") as raised:
        read_run(FINGERPRINT)
    assert SECRET not in str(raised.value)
