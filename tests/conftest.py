"""What several tests share."""

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from made_once import made_once
from unanswered import SECRET

LONGEST = (
    "faults/test_training_stage.py",
    "faults/test_interrupted_stages.py",
    "faults/test_lost_workers.py",
    "test_ray_ports.py",
    "faults/test_mlflow_away.py",
    "faults/test_read_only.py",
    "faults/test_secrets.py",
    "decoding/test_invariance.py",
    "test_stale_stages.py",
    "test_stages.py",
    "test_report_browser.py",
    "test_fuzz.py",
    "decoding/test_processes.py",
    "decoding/test_translate_command.py",
    "training/test_two_workers.py",
    "test_docs.py",
    "training/test_resume.py",
)
"""These files come first, in this order: a process that begins a long one last is waited for by the others."""

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the models are tiny, and idle threads of torch spin
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:  # as a shell does in the background, and nohup
        signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    places = {folder / name: place for place, name in enumerate(LONGEST)}
    assert all(path.is_file() for path in places)
    items.sort(key=lambda item: places.get(item.path, len(places)))  # the others stay as they are


@pytest.fixture(scope="session")
def fra_eng_archive() -> Path:
    """The real corpus, where `FRA_ENG_ARCHIVE` names it; tests that need it are skipped elsewhere."""
    name = os.environ.get("FRA_ENG_ARCHIVE")
    if not name or not Path(name).is_file():
        pytest.skip("the fra-eng archive is absent: set FRA_ENG_ARCHIVE to its path")
    return Path(name).resolve()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's tables, which take seconds to make; to be copied."""

    def make(folder: Path) -> None:
        from mlflow import MlflowClient  # late: it takes seconds

        uri = f"sqlite:///{folder / 'mlflow.db'}"
        MlflowClient(uri, uri).search_experiments()

    return made_once(tmp_path_factory, "store", make) / "mlflow.db"


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
