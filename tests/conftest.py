"""What several tests share."""

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from unanswered import SECRET

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the models are tiny, and idle threads of torch spin


@pytest.fixture(scope="session")
def fra_eng_archive() -> Path:
    """The real corpus, where `FRA_ENG_ARCHIVE` names it; tests that need it are skipped elsewhere."""
    name = os.environ.get("FRA_ENG_ARCHIVE")
    if not name or not Path(name).is_file():
        pytest.skip("the fra-eng archive is absent: set FRA_ENG_ARCHIVE to its path")
    return Path(name).resolve()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's tables, which take seconds to make."""
    from mlflow import MlflowClient  # late: it takes seconds

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}", f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def store(empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store for one test, in the environment; the working folder is `corpus`."""
    shutil.copyfile(empty_store, tmp_path / "mlflow.db")
    (tmp_path / "corpus").mkdir()
    monkeypatch.chdir(tmp_path / "corpus")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", str(tmp_path / "mlartifacts"))
    for name in ("DVC_ROOT", "DVC_EXP_NAME", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "mlflow.db"


@pytest.fixture
def dead_server() -> Iterator[str]:
    """An address where nobody listens, with a password in it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://ada:{SECRET}@127.0.0.1:{taken.getsockname()[1]}"
