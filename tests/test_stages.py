"""What a user of a pipeline script sees: help, one readable line for a fault or an end, and details on request."""

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from source_imports import ROOT

SCRIPT = '''"""Stage `sample`: reads nothing and writes nothing.

Settings: section `sample` of params.yaml.
"""

import logging

from passerelle.stages import run_stage


def main() -> None:
    logging.getLogger("passerelle.sample").info("reading")
    {body}


if __name__ == "__main__":
    run_stage(main)
'''
SCRIPTS = sorted((ROOT / "pipeline").glob("*.py"))
WITH_VARIANTS = {"train", "evaluate"}


def run(script: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@cache
def help_of(script: Path) -> subprocess.CompletedProcess[str]:
    """What the script answers to --help; it reads no file."""
    return run(script, "--help", folder=ROOT)


def run_body(tmp_path: Path, body: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "sample.py"
    script.write_text(SCRIPT.format(body=body), encoding="utf-8")
    return run(script, *arguments, folder=tmp_path)


def test_the_end_looks_for_no_garbage(tmp_path: Path) -> None:
    body = "import atexit, gc, torch; atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 100_000))"
    script = tmp_path / "sample.py"
    script.write_text(f"{body}\n{SCRIPT.format(body='')}", encoding="utf-8")
    assert run(script, folder=tmp_path).stdout == "True True\n"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_the_docstring_and_does_no_work(tmp_path: Path, flag: str) -> None:
    answer = run_body(tmp_path, 'raise ValueError("work was done")', flag)
    assert answer.returncode == 0
    assert answer.stdout.startswith("Stage `sample`: reads nothing and writes nothing.\n\nSettings:")
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (
            'raise ValueError("pairs.txt:3: no tab; see corpus in params.yaml")',
            "pairs.txt:3: no tab; see corpus",
        ),
        ('open("absent.txt")', "absent.txt: No such file or directory\n"),
        (
            'raise OSError(13, "Permission denied", "x/model")',
            "x/model: Permission denied; make it readable and writable for you, or work in a copy of this folder\n",
        ),
        (
            'raise OSError(30, "Read-only file system", "model")',
            "model: Read-only file system; work in a copy of this folder that can be written\n",
        ),
        (
            'raise OSError(28, "No space left on device", "model")',
            "model: No space left on device; make room on that disk, then run the same command again\n",
        ),
        ('raise OSError(18, "Cross-device link", "a", None, "b")', "b: Cross-device link\n"),
        ('raise OSError(5, "Input/output error")', "Input/output error\n"),
        ('raise ChildProcessError("a process has ended")', "a process has ended\n"),
    ],
)
def test_a_fault_of_the_input_is_one_line_and_status_1(tmp_path: Path, body: str, line: str) -> None:
    answer = run_body(tmp_path, body)
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"error: {line}")
    assert answer.stderr.count("\n") == 1
    assert answer.stdout == ""


def test_verbose_shows_the_log_and_where_a_fault_arose(tmp_path: Path) -> None:
    answer = run_body(tmp_path, 'raise ValueError("no tab")', "-v")
    assert answer.returncode == 1
    assert answer.stderr.startswith("INFO passerelle.sample: reading\nTraceback (most recent call last):")
    assert answer.stderr.endswith("ValueError: no tab\n")


def test_a_fault_of_ours_keeps_its_traceback(tmp_path: Path) -> None:
    answer = run_body(tmp_path, "assert False, 'impossible'")
    assert answer.returncode == 1
    assert "Traceback" in answer.stderr


@pytest.mark.parametrize("argument", ["--epochs=3", "train", "-x"])
def test_an_unknown_argument_is_refused(tmp_path: Path, argument: str) -> None:
    answer = run_body(tmp_path, "print('work was done')", argument)
    assert answer.returncode == 1
    assert answer.stderr.startswith(
        f"error: unknown argument {argument}; settings are in params.yaml, -h prints"
    )
    assert answer.stdout == ""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_help_of_a_stage_says_what_it_does_and_where_its_settings_are(script: Path) -> None:
    answer = help_of(script)
    assert answer.returncode == 0
    assert answer.stderr == ""
    assert answer.stdout.startswith(f"Stage `{script.stem}`: ")
    assert "params.yaml" in answer.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_stage_in_a_folder_without_params_says_so(script: Path, tmp_path: Path) -> None:
    answer = run(script, folder=tmp_path)
    assert answer.returncode == 1
    assert answer.stderr.startswith(
        "error: params.yaml: no such file; run the stage in the folder that holds"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_training_and_evaluation_take_a_variant_and_say_so(script: Path, tmp_path: Path) -> None:
    assert ("--variant NAME" in help_of(script).stdout) == (script.stem in WITH_VARIANTS)
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "params.yaml").write_text("model: {d_model: 16}", encoding="utf-8")
    answer = run(script, "--variant", "small", folder=tmp_path)
    assert answer.returncode == 1
    if script.stem in WITH_VARIANTS:
        assert answer.stderr.startswith("error: small/params.yaml: root: missing; add it")
    else:
        assert answer.stderr.startswith("error: unknown argument --variant; settings are in params.yaml")


VARIANT_SCRIPT = SCRIPT.replace("run_stage", "run_variant_stage").replace(
    "def main() -> None:", "def main(folder) -> None:"
)


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [([], "."), (["--variant", "large"], "large"), (["-v", "--variant", "large"], "large")],
)
def test_a_stage_receives_the_folder_of_its_variant(
    tmp_path: Path, arguments: list[str], folder: str
) -> None:
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "params.yaml").write_text("{}", encoding="utf-8")
    script = tmp_path / "sample.py"
    script.write_text(VARIANT_SCRIPT.format(body="print(folder)"), encoding="utf-8")
    answer = run(script, *arguments, folder=tmp_path)
    assert (answer.returncode, answer.stdout) == (0, f"{folder}\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--variant"], "error: --variant needs the name of a folder that is beside params.yaml"),
        (["--variant", "../x"], "error: --variant needs the name of a folder that is beside params.yaml"),
        (["--variant", "."], "error: --variant needs the name of a folder that is beside params.yaml"),
        (["--variant", "-v"], "error: --variant needs the name of a folder that is beside params.yaml"),
        (
            ["--variant", "huge"],
            "error: huge/params.yaml: no such file; a variant is a folder with a params.yaml of its own",
        ),
        (
            ["--variants", "huge"],
            "error: unknown argument --variants; settings are in params.yaml, -h prints",
        ),
    ],
)
def test_a_variant_that_does_not_exist_is_refused(tmp_path: Path, arguments: list[str], line: str) -> None:
    script = tmp_path / "sample.py"
    script.write_text(VARIANT_SCRIPT.format(body="print('work was done')"), encoding="utf-8")
    answer = run(script, *arguments, folder=tmp_path)
    assert answer.returncode == 1
    assert answer.stderr.startswith(line)
    assert answer.stderr.count("\n") == 1
    assert answer.stdout == ""


STOPPED = "stopped; run `dvc repro` again to do this stage anew\n"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_stage_in_order_and_one_line_says_how_to_go_on(tmp_path: Path, name: str) -> None:
    body = f"""
    import os, signal, threading, time
    threading.Thread(target=time.sleep, args=[3600]).start()  # such as one within a library: it is not waited for
    print("begun")
    try:
        os.kill(os.getpid(), signal.{name})
        time.sleep(3600)
    finally:
        print("cleared away")"""
    answer = run_body(tmp_path, body)
    assert answer.returncode == 128 + getattr(signal, name)
    assert (answer.stdout, answer.stderr) == ("begun\ncleared away\n", STOPPED)


def test_a_closed_terminal_is_nothing_to_a_stage_that_nohup_started(tmp_path: Path) -> None:
    body = "import os, signal; os.kill(os.getpid(), signal.SIGHUP); print('done')"
    (tmp_path / "sample.py").write_text(SCRIPT.format(body=body), encoding="utf-8")
    command = ["nohup", sys.executable, "sample.py"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (0, "done\n")


needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux tells of a process's end")
LIKE_DVC = """
import os, subprocess, sys
subprocess.run(sys.argv[1:], env=os.environ | {"DVC_STAGE": "sample"})
"""


@needs_pidfd
@pytest.mark.parametrize("between", ["nothing", "a shell"])
def test_a_stage_ends_with_the_dvc_that_runs_it(tmp_path: Path, between: str) -> None:
    body = "import time; print('begun', flush=True); time.sleep(3600)"
    (tmp_path / "sample.py").write_text(SCRIPT.format(body=body), encoding="utf-8")
    stage = [sys.executable, "sample.py"]
    if between == "a shell":
        stage = ["/bin/sh", "-c", f"{sys.executable} sample.py; echo the shell goes on"]
    command = [sys.executable, "-c", LIKE_DVC, *stage]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as dvc:  # type: ignore[call-overload]
        assert dvc.stdout.readline() == "begun\n"
        dvc.kill()
        _, errors = dvc.communicate()  # once the last of them has ended
    assert errors == STOPPED


@needs_pidfd
def test_a_stage_whose_dvc_is_dead_already_does_no_work(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(SCRIPT.format(body="print('work was done')"), encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "sample.py"],
        cwd=tmp_path,
        env=os.environ | {"DVC_STAGE": "sample"},
        start_new_session=True,  # so its parent is of another one, as init is of a DVC's
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout, answer.stderr) == (143, "", STOPPED)


def test_a_stage_that_is_run_by_hand_asks_for_no_dvc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DVC_STAGE", raising=False)
    assert run_body(tmp_path, "print('done')").stdout == "done\n"
