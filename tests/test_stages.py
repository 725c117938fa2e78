"""What a user of a pipeline script sees: help, one readable line for a fault, and details on request."""

import subprocess
import sys
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


def run_body(tmp_path: Path, body: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "sample.py"
    script.write_text(SCRIPT.format(body=body), encoding="utf-8")
    return run(script, *arguments, folder=tmp_path)


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
        ('open("absent.txt")', "[Errno 2] No such file or directory: 'absent.txt'"),
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
def test_the_help_of_a_stage_says_what_it_does_and_where_its_settings_are(
    script: Path, tmp_path: Path
) -> None:
    answer = run(script, "--help", folder=tmp_path)
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
    assert ("--variant NAME" in run(script, "--help", folder=tmp_path).stdout) == (
        script.stem in WITH_VARIANTS
    )
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


def test_ctrl_c_is_one_line_that_says_how_to_go_on(tmp_path: Path) -> None:
    answer = run_body(tmp_path, "raise KeyboardInterrupt")
    assert answer.returncode == 130
    assert answer.stderr == "stopped; run `dvc repro` again to do this stage anew\n"
