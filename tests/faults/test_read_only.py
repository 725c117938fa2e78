"""A tree that cannot be written, and a full disk: one line says where and what to do, and nothing is lost."""

import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from stage_process import STAGES, Place, contents

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below MLflow warn of one another
COMMAND = shlex.join([sys.executable, "-c", "from passerelle.cli import main; main()"])
OUTPUTS = {
    "fetch": "data/raw/pairs.txt",
    "prepare": "data/prepared",
    "tokenizer": "data/tokenizer",
    "shards": "data/shards/train",
    "evaluate": "evaluation",
}


def own_mounts() -> list[str]:
    """What makes a command's mounts its own, for root or else a user who may be root of a namespace."""
    for options in (["--mount"], ["--user", "--map-root-user", "--mount"]):
        command = ["unshare", *options, "--propagation", "private"]
        try:
            if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
                return command
        except FileNotFoundError:
            break
    return []


needs_mounts = pytest.mark.skipif(not own_mounts(), reason="this kernel lets nobody mount anything here")


@dataclass(frozen=True)
class Answer:
    status: int
    output: str
    errors: str


def run_mounted(place: Place, setup: str, commands: dict[str, str]) -> dict[str, Answer]:
    """Run shell commands one by one in the folder, after `setup`, whose mounts end with them."""
    answers = place.folder.parent / "answers"
    answers.mkdir()
    lines = [
        f"sh -c {shlex.quote(command)} >{answers}/{name}.out 2>{answers}/{name}.err; echo $? >{answers}/{name}.status"
        for name, command in commands.items()
    ]
    script = "\n".join(["set -e", setup, f"cd {shlex.quote(str(place.folder))}", "set +e", *lines])
    subprocess.run([*own_mounts(), "sh", "-c", script], env=place.environment, check=True)
    return {
        name: Answer(
            int((answers / f"{name}.status").read_text()),
            (answers / f"{name}.out").read_text(),
            (answers / f"{name}.err").read_text(),
        )
        for name in commands
    }


def copied(finished: Place, folder: Path) -> Place:
    shutil.copytree(finished.folder, folder / "tree", dirs_exist_ok=True)
    return Place(folder / "tree", finished.environment | {"PASSERELLE_RUNS": str(folder / "tree/runs")})


@needs_mounts
def test_on_a_read_only_tree_what_writes_says_so_and_what_reads_works(
    finished: Place, tmp_path: Path
) -> None:
    place = copied(finished, tmp_path)
    before = contents(place.folder)
    (place.folder / "lines.txt").write_text("Go.\n")
    (place.folder / "french.txt").write_text("Va !\n")
    stages = {stage: shlex.join(place.command(stage)) for stage in (*STAGES, "train")}
    reading = {
        "translate": f"{COMMAND} translate lines.txt",
        "score": f"{COMMAND} score lines.txt french.txt",
        "leak": f"{COMMAND} leak",
    }
    drawing = {"attention": f"{COMMAND} attention 'Go.' --out drawn"}
    tree = shlex.quote(str(place.folder))
    setup = f"mount --bind {tree} {tree}; mount -o remount,bind,ro {tree}"
    answers = run_mounted(place, setup, stages | reading | drawing)
    for name in (*stages, *drawing):  # drawing warns before of a translation that has no end
        *_, line = answers[name].errors.splitlines()
        assert (answers[name].status, "Traceback" in answers[name].errors) == (1, False), answers[name]
        assert line.startswith("error: "), answers[name]
        assert line.endswith(": Read-only file system; work in a copy of this folder that can be written"), (
            line
        )
    for stage, output in OUTPUTS.items():
        assert answers[stage].errors.startswith(f"error: {output}: Read-only file system")
    assert answers["train"].errors.startswith(f"error: {place.folder}/runs")
    for name in reading:
        assert (answers[name].status, "error" in answers[name].errors) == (0, False), answers[name]
        assert answers[name].output
    assert contents(place.folder) == before


@needs_mounts
@pytest.mark.parametrize("stage", STAGES)
def test_where_the_disk_is_full_a_stage_says_so_and_what_stood_there_stays(
    stage: str, finished: Place, tmp_path: Path
) -> None:
    place = copied(finished, tmp_path)
    before = contents(place.folder)
    kept, tree = tmp_path / "kept", shlex.quote(str(place.folder))
    setup = (
        f"cp -r {tree} {kept}; mount -t tmpfs -o size=64m tmpfs {tree}; cp -r {kept}/. {tree}; rm -r {kept}; "
        f"cat /dev/zero >{tree}/filler 2>/dev/null || true; truncate -s -4K {tree}/filler"
    )
    commands = {"stage": shlex.join(place.command(stage)), "keep": f"rm filler; cp -r . {kept}"}
    answer = run_mounted(place, setup, commands)["stage"]
    assert answer.status == 1
    assert answer.errors.startswith(f"error: {OUTPUTS[stage]}"), answer
    assert answer.errors.endswith(
        ": No space left on device; make room on that disk, then run the same command again\n"
    )
    assert answer.errors.count("\n") == 1
    assert contents(kept) == before
