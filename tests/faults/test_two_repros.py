"""DVC at work twice, or killed: one waits its turn, what it was at goes on well, and what is left is no orphan."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from corpus_server import CorpusServer
from passerelle.config import TrainParams
from passerelle.data.tokenizer import load_tokenizer
from passerelle.params_file import load_params
from passerelle.run_folder import lock_run
from passerelle.training.fingerprint import run_fingerprint
from source_imports import ROOT
from stage_process import Place, contents, is_at_work, left_over, processes, send, until

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below MLflow warn of one another
REPRO = (sys.executable, "-m", "dvc", "repro", "fetch")


@pytest.fixture
def project(finished: Place, tmp_path: Path) -> Place:
    """A working tree in which stage `fetch` has not run."""
    for name in ("params.yaml", "dvc.yaml"):
        shutil.copy((ROOT if name == "dvc.yaml" else finished.folder) / name, tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    place = Place(tmp_path, finished.environment | {"PATH": path, "DVC_NO_ANALYTICS": "1"})
    subprocess.run([sys.executable, "-m", "dvc", "init", "-q", "--no-scm"], cwd=tmp_path, check=True)
    return place


@contextmanager
def repro(place: Place) -> Iterator[subprocess.Popen[str]]:
    """DVC at work; what still runs at the end is killed, since it may wait for the server."""
    with subprocess.Popen(
        REPRO,
        cwd=place.folder,
        env=place.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                send(signal.SIGKILL, process)


def test_a_second_repro_is_told_of_the_first_and_a_killed_one_leaves_no_stage_at_work(
    project: Place, finished: Place, server: CorpusServer
) -> None:
    folder = project.folder
    server.may_go_on.clear()
    with repro(project) as first:
        until(partial(is_at_work, project, "fetch", first))
        with repro(project) as second:
            _, errors = second.communicate()
        assert second.returncode == 255
        assert re.search(
            rf"is busy, it is being blocked by:.*\(PID {first.pid}\): .* repro fetch", errors, re.S
        ), errors
        server.may_go_on.set()
        _, errors = first.communicate()
    assert first.returncode == 0, errors
    raw = {
        name: content for name, content in contents(finished.folder).items() if name.startswith("data/raw")
    }
    assert contents(folder).items() >= raw.items()

    shutil.rmtree(folder / "data")
    (folder / "dvc.lock").unlink()
    shutil.rmtree(folder / ".dvc/cache")
    server.may_go_on.clear()
    with repro(project) as killed:
        until(partial(is_at_work, project, "fetch", killed))
        killed.kill()
        until(lambda: not processes(killed.pid))  # though the server has still sent but half
        _, errors = killed.communicate()
    assert "stopped; run `dvc repro` again to do this stage anew" in errors
    assert left_over(folder) == []
    server.may_go_on.set()
    with repro(project) as again:
        _, errors = again.communicate()
    assert again.returncode == 0, errors
    assert contents(folder).items() >= raw.items()


def test_a_run_is_trained_by_one_working_tree_and_the_other_is_told_by_which(
    finished: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Place(tmp_path / "other", finished.environment | {"PASSERELLE_RUNS": str(tmp_path / "runs")})
    shutil.copytree(finished.folder, other.folder)
    monkeypatch.chdir(finished.folder)
    tokenizer = load_tokenizer(Path("data/tokenizer"))
    fingerprint = run_fingerprint(load_params(TrainParams), Path("data/shards"), tokenizer.sha256)
    run_folder = tmp_path / "runs" / fingerprint
    with lock_run(run_folder), other.start("train") as process:
        _, errors = process.communicate()
    assert process.returncode == 1
    holder = f"process {os.getpid()} on {socket.gethostname()}"
    assert errors == f"error: {run_folder}: {holder} is training this run; wait for it or stop it\n"
    with lock_run(run_folder):  # free again, and the file names one holder alone
        assert (run_folder / "lock").read_text() == f"{holder}\n"


def test_a_killed_holder_frees_its_run(tmp_path: Path) -> None:
    code = (
        "import signal, sys; from pathlib import Path; from passerelle.run_folder import lock_run\n"
        "with lock_run(Path('run')): print('held', flush=True); signal.pause()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(ValueError, match=rf"run: process {holder.pid} on \S+ is training this run; wait"),
            lock_run(tmp_path / "run"),
        ):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with lock_run(tmp_path / "run"):
            pass
