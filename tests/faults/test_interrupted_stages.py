"""Whatever ends a stage in the midst of its work, what stood there before stays, and the next run makes it whole.

`train` has tests of its own: it goes on where it was.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from corpus_server import CorpusServer
from stage_process import (
    STAGES,
    Place,
    caught,
    contents,
    left_over,
    processes,
    undated,
    until,
)

ADVICE = "stopped; run `dvc repro` again to do this stage anew"

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below MLflow warn of one another


def ended(process: subprocess.Popen[str]) -> tuple[int, bool]:
    """Let the stage go on, and wait for it and all that it started: its status, and whether it said how to go on."""
    os.killpg(process.pid, signal.SIGCONT)
    _, errors = process.communicate()
    until(lambda: not processes(process.pid))  # multiprocessing's own helper ends a moment later
    assert "Traceback" not in errors
    assert "Saving" not in errors, "SentencePiece was waited for"
    return process.returncode, ADVICE in errors.splitlines()  # SentencePiece may still say something after it


@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupted_stage_leaves_what_stood_there_and_the_next_run_is_whole(
    stage: str, finished: Place, server: CorpusServer, tmp_path: Path
) -> None:
    folder = tmp_path / "pipeline"
    shutil.copytree(finished.folder, folder)
    place, before = Place(folder, finished.environment), contents(folder)
    assert left_over(folder) == []

    process = caught(place, stage, server)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert ended(process) == (130, True)
    assert contents(folder) == before

    process = caught(place, stage, server)
    process.terminate()
    assert ended(process) == (143, True)
    assert contents(folder) == before

    process = caught(place, stage, server)
    process.kill()
    assert ended(process)[0] == -signal.SIGKILL
    assert contents(folder).items() >= before.items()
    assert left_over(folder) or stage == "tokenizer"

    server.may_go_on.set()
    place.run(stage)
    assert undated(contents(folder)) == undated(before)
    assert set(contents(folder)) == set(before)
