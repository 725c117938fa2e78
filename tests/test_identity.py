"""What a run says of its code."""

import subprocess
from pathlib import Path

import pytest

from passerelle.identity import identity, uncommitted_changes


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in (
        "dvc.lock",
        "examples/one/dvc.lock",
        "metrics/training.json",
        "examples/one/metrics/a.json",
        "code.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True)
    return tmp_path


def test_a_committed_tree_is_clean_also_after_dvc_wrote_its_results(repository: Path) -> None:
    for name in ("dvc.lock", "examples/one/dvc.lock", "metrics/training.json", "examples/one/metrics/a.json"):
        (repository / name).write_text("new\n")
    tags = identity(repository)
    assert tags["git.dirty"] == "false"
    assert len(tags["git.commit"]) == 40
    assert uncommitted_changes(repository) == ""


@pytest.mark.parametrize("name", ["code.py", "added.py"])
def test_changed_or_added_code_makes_it_dirty(repository: Path, name: str) -> None:
    (repository / name).write_text("new\n")
    assert identity(repository)["git.dirty"] == "true"


def test_the_changes_kept_with_a_run_are_those_of_the_code(repository: Path) -> None:
    for name in ("code.py", "dvc.lock"):
        (repository / name).write_text("new\n")
    changes = uncommitted_changes(repository)
    assert "code.py" in changes
    assert "dvc.lock" not in changes


def test_a_folder_without_git_has_no_commit(tmp_path: Path) -> None:
    assert "git.commit" not in identity(tmp_path)
