"""A recorded run is made again from its commit, or the link that is missing is named.

The project here is a small one: its only stage writes scores that come from its code, its parameters and the
environment, so that a replay with anything else is seen.
"""

import argparse
import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from passerelle.commands import reproduce as command
from passerelle.config import Params
from passerelle.identity import identity, uncommitted_changes
from passerelle.lineage import NAME, identity_sections
from passerelle.replay import compare, make_clone, run_pipeline, write_params
from passerelle.reproduce import DIFF, Link, Record, links, record_of

HASH = "ab" * 32
CODE = "POINTS = 30.0\n\n\n\n\n"
PARAMS = """\
# What a reader should know.
root: .
corpus: {name: phrases, origin: phrasebook}
decoding:
  beam_size: 5   # wide
evaluation: {seed: 1}
"""
SCRIPT = """\
import json, os, pathlib
from answer import POINTS
beam = int(pathlib.Path("params.yaml").read_text().split("beam_size: ")[1].split()[0])
away = sum(name in os.environ for name in ("MLFLOW_TRACKING_URI", "PASSERELLE_RUNS", "RAY_ADDRESS"))
files = {
    "metrics/evaluation.json": {"bleu": POINTS + beam - 100.0 * away, "bleu_low": 1.0, "sentences": 3, "speed": 7.0},
    "model/config.json": {"sha256": {"weights.safetensors": "w", "tokenizer.model": "t"}},
    "data/shards/train/manifest.json": {"content_sha256": "s"},
}
for name, content in files.items():
    pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(name).write_text(json.dumps(content))
"""
DVC = """\
stages:
  evaluate:
    cmd: python evaluate.py
    deps: [evaluate.py, src/answer.py]
    params: [decoding]
    outs: [model, data/shards]
    metrics: [{metrics/evaluation.json: {cache: false}}]
"""
FILES = {
    "src/answer.py": CODE,
    "params.yaml": PARAMS,
    "evaluate.py": SCRIPT,
    "dvc.yaml": DVC,
    ".gitignore": "/model\n/data\n__pycache__/\n",
    ".dvc/config": "[core]\n    analytics = false\n",
    ".dvc/.gitignore": "/config.local\n/tmp\n/cache\n",
}


class Recorded(NamedTuple):
    """As `recorded_runs` gives it, as far as it is read."""

    run_id: str
    experiment: str
    tags: dict[str, str]


def run_git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    run_git(folder, "init", "-q")
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-q", "-m", "first")
    monkeypatch.chdir(folder)
    return folder


def card_of(root: Path, **sections: Any) -> dict[str, Any]:
    """Of a run that was made in the root just now."""
    parameters: dict[str, Any] = {name: {} for name in Params.model_fields if name != "root"}
    parameters |= {"corpus": {"name": "phrases", "origin": "phrasebook"}, "decoding": {"beam_size": 5}}
    return {
        "format": 1,
        "run": {"fingerprint": "0123456789abcdef", "folder": ".", "variant": "."},
        "time": {"date": "2026-11-30T12:00:00+00:00"},
        "scores": {"bleu": 35.0, "bleu_low": 33.0, "sentences": 3, "speed": 900.0},
        "parameters": parameters,
        "data": {"test_sha256": HASH, "shards_sha256": {"train": "s"}},
        "tokenizer": {"sha256": "t"},
        "model": {"sha256": "w"},
        **identity_sections(identity(root)),
        **sections,
    }


def record(root: Path, changes: str = "", **sections: Any) -> Record:
    return Record("1f2e", card_of(root, **sections), changes, {})


def artifacts(files: Mapping[str, Path]) -> Callable[[str], Path]:
    def artifact(name: str) -> Path:
        if name not in files:
            raise ValueError(f"no artifact {name}")
        return files[name]

    return artifact


def states(found: list[Link]) -> dict[str, str]:
    return {link.name: link.state for link in found}


def corpus(**values: Any) -> dict[str, Any]:
    """Parameters whose corpus is a file."""
    return {
        "corpus": {
            "name": "mine",
            "origin": "file",
            "path": "data/external/mine.tsv",
            "sha256": None,
            **values,
        }
    }


def test_all_links_of_a_run_made_here_are_found(root: Path) -> None:
    assert states(links(record(root), root)) == dict.fromkeys(
        ("lineage", "commit", "changes", "parameters", "data", "libraries", "machine"), "found"
    )


@pytest.mark.parametrize(
    ("sections", "name", "state", "text"),
    [
        ({"format": 2}, "lineage", "missing", "is of format 2, but this version reads 1"),
        ({"code": {}}, "commit", "missing", "the run was made outside a git repository"),
        ({"code": {"commit": "0" * 40}}, "commit", "missing", f"{'0' * 40} is not in "),
        ({"parameters": {}}, "parameters", "differs", "not recorded: corpus, languages, cleaning, split"),
        ({"parameters": {}}, "data", "differs", "that of the commit is taken"),
        ({"parameters": corpus()}, "data", "missing", "pairs of mine are not here; put it at"),
        ({"parameters": corpus(archive_variable="MINE")}, "data", "missing", "set MINE to its archive"),
        ({"parameters": corpus(urls=["http://x/y"])}, "data", "found", "to be downloaded from http://x/y"),
        ({"versions": {"torch": "0.1", "passerelle": "9"}}, "library", "differs", "torch 0.1 then, "),
        ({"versions": {"fairseq": "0.1"}}, "library", "differs", "fairseq 0.1 then, none here"),
        ({"machine": {"processor": "abacus"}}, "machine", "differs", "abacus then, "),
    ],
)  # fmt: skip
def test_a_link_that_is_not_whole_is_named(
    sections: dict[str, Any], name: str, state: str, text: str, root: Path
) -> None:
    (link,) = [link for link in links(record(root, **sections), root) if link.name == name]
    assert link.state == state
    assert text in link.text
    assert "\n" not in link.text


def test_a_run_without_a_card_is_told_by_its_tags(root: Path) -> None:
    found = links(record_of("1f2e", identity(root), artifacts({})), root)
    assert states(found)["lineage"] == "missing"
    assert states(found)["commit"] == states(found)["machine"] == "found"
    assert found[0].text.endswith("no artifact evaluation/lineage.json")


def test_raw_data_are_found_where_they_lie(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def data(**values: Any) -> Link:
        return next(
            link for link in links(record(root, parameters=corpus(**values)), root) if link.name == "data"
        )

    (root / "data/raw").mkdir(parents=True)
    (root / "data/raw/pairs.txt").write_text("a\tb\n")
    assert data().text.endswith("project/data/raw/pairs.txt")
    assert data(sha256=HASH).state == "missing"  # it is another text
    (root / "data/external").mkdir()
    (root / "data/external/mine.tsv").write_text("a\tb\n")
    assert data(sha256=HASH).text.endswith("project/data/external/mine.tsv")
    monkeypatch.setenv("MINE", str(tmp_path / "mine.zip"))
    assert data(archive_variable="MINE").state == "missing"
    (tmp_path / "mine.zip").write_bytes(b"")
    assert data(archive_variable="MINE").text.endswith("mine.zip")


def test_changes_without_a_diff_are_told(root: Path) -> None:
    (root / "new.py").write_text("")
    found = record_of("1f2e", {}, artifacts({NAME: write_card(root)}))
    (link,) = [link for link in links(found, root) if link.name == "changes"]
    assert (link.state, "no code/uncommitted.diff is kept" in link.text) == ("differs", True)


def test_a_diff_of_an_earlier_training_is_no_part_of_committed_code(root: Path) -> None:
    (root / "old.diff").write_text("diff --git a b")
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "all")
    found = record_of("1f2e", {}, artifacts({NAME: write_card(root), DIFF: root / "old.diff"}))
    assert found.changes == ""
    assert states(links(found, root))["changes"] == "found"


def test_a_diff_of_other_code_is_missing_its_commit(root: Path) -> None:
    (root / "src/answer.py").write_text("POINTS = 31.0\n")
    changes = uncommitted_changes(root).replace("30.0", "29.0")
    (link,) = [link for link in links(record(root, changes), root) if link.name == "changes"]
    assert link.state == "missing"
    assert "cannot be applied to the commit: git apply: error: patch failed: src/answer.py" in link.text


def write_card(root: Path) -> Path:
    path = root.parent / "lineage.json"
    path.write_text(json.dumps(card_of(root)), encoding="utf-8")
    return path


def recorded_with_changes(root: Path) -> Record:
    """A run of changed code, whose record is read as its artifacts are; then the changes are thrown away."""
    (root / "src/answer.py").write_text(CODE.replace("30.0", "32.0"))
    (root / "uncommitted.diff").write_text(uncommitted_changes(root), encoding="utf-8")
    files = {NAME: write_card(root), DIFF: root / "uncommitted.diff"}
    found = record_of("1f2e", {}, artifacts(files))
    run_git(root, "checkout", "-q", ".")
    return found


def test_a_clone_has_the_commit_the_changes_and_the_parameters(root: Path, tmp_path: Path) -> None:
    found = recorded_with_changes(root)
    (root / "src/answer.py").write_text("POINTS = 50.0\n")
    run_git(root, "commit", "-q", "-a", "-m", "later")
    assert states(links(found, root))["changes"] == "found"
    found.card["parameters"]["decoding"]["beam_size"] = 3
    make_clone(found, root, tmp_path / "clone")
    assert (tmp_path / "clone/src/answer.py").read_text() == CODE.replace("30.0", "32.0")
    assert (tmp_path / "clone/params.yaml").read_text() == PARAMS.replace("5 ", "3 ")
    assert "dir = cache" in (tmp_path / "clone/.dvc/config.local").read_text()


def test_a_commit_that_no_branch_holds_is_cloned(root: Path, tmp_path: Path) -> None:
    """Such as that of a DVC experiment, or of an amended branch."""
    run_git(root, "commit", "-q", "--allow-empty", "-m", "lost")
    found = record(root)
    run_git(root, "reset", "-q", "--hard", "HEAD~1")
    make_clone(found, root, tmp_path / "clone")
    assert run_git(tmp_path / "clone", "log", "-1", "--format=%s") == "lost"


@pytest.mark.parametrize(
    "other", [{"time": {"date": "of a later evaluation"}}, {"run": {"folder": "elsewhere"}}]
)
def test_a_clone_of_the_same_record_stays_and_another_is_not_touched(
    other: dict[str, Any], root: Path, tmp_path: Path
) -> None:
    make_clone(record(root), root, tmp_path / "clone")
    (tmp_path / "clone/half-done").write_text("")
    make_clone(record(root), root, tmp_path / "clone")
    assert (tmp_path / "clone/half-done").exists()
    with pytest.raises(
        ValueError, match=r"clone: exists already; remove it, or name another folder with --into"
    ):
        make_clone(record(root, **other), root, tmp_path / "clone")


def test_a_clone_that_fails_leaves_nothing(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"git apply: error: .*patch"):
        make_clone(
            record(root, "no diff at all", code={"commit": "HEAD", "dirty": True}), root, tmp_path / "clone"
        )
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


def test_a_corpus_that_no_variable_names_is_put_in_its_place(root: Path, tmp_path: Path) -> None:
    (root / "data/external").mkdir(parents=True)
    (root / "data/external/mine.tsv").write_text("a\tb\n")
    make_clone(record(root, parameters=corpus()), root, tmp_path / "clone")
    assert (tmp_path / "clone/data/external/mine.tsv").read_text() == "a\tb\n"


def test_parameters_are_set_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "wide").mkdir()
    (tmp_path / "params.yaml").write_text(
        "root: ../..\nmodel:\n  d: 4  # width\n  n: 2\ntraining: {steps: 5}\n"
    )
    (tmp_path / "wide/params.yaml").write_text("model:\n  d: 8  # wider\n")
    write_params(
        tmp_path, "wide", {"model": {"d": 8, "n": 3}, "training": {"steps": 5}, "new": {"list": ["a"]}}
    )
    assert (tmp_path / "wide/params.yaml").read_text() == "model:\n  d: 8  # wider\n"
    text = "root: ../..\nmodel:\n  d: 4  # width\n  n: 3\ntraining: {steps: 5}\nnew:\n  list:\n  - a\n"
    assert (tmp_path / "params.yaml").read_text() == text
    write_params(tmp_path, "wide", {"model": {"d": 9, "n": 3}})
    assert (tmp_path / "wide/params.yaml").read_text() == "model:\n  d: 9  # wider\n"


def test_a_run_is_made_again_and_compared(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code of the clone, not the one that is installed; nothing of the environment that leads elsewhere."""
    for name in ("MLFLOW_TRACKING_URI", "PASSERELLE_RUNS", "RAY_ADDRESS"):
        monkeypatch.setenv(name, "elsewhere")
    found = recorded_with_changes(root)  # 32 points and 5 of the beam
    make_clone(found, root, tmp_path / "clone")
    run_pipeline(found, root, tmp_path / "clone")
    outcome = compare(found, tmp_path / "clone", 1.0)
    assert outcome.faults == ["bleu was 35.00 and is 37.00"]
    assert compare(found, tmp_path / "clone", 2.0).faults == []
    table = [" ".join(line.split()) for line in outcome.lines]
    assert table == [
        "differs test sentences",
        "same shards, train",
        "same tokenizer",
        "same weights",
        "",
        "score recorded here difference",
        "bleu 35.00 37.00 +2.00",
        "sentences 3.00 3.00 +0.00",
    ]


def test_counts_must_be_equal_and_scores_there(root: Path, tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics/evaluation.json").write_text('{"bleu": 35.0, "sentences": 4}')
    assert compare(record(root), tmp_path, 9.0).faults == ["sentences was 3.00 and is 4.00"]
    (tmp_path / "metrics/evaluation.json").write_text('{"sentences": 3}')
    assert compare(record(root), tmp_path, 9.0).faults == ["bleu was not measured again"]
    with pytest.raises(ValueError, match=r"evaluation.json: no such file; the pipeline wrote no scores"):
        compare(record(root), tmp_path / "nowhere", 9.0)


def test_a_stage_that_fails_is_told(root: Path, tmp_path: Path) -> None:
    (root / "evaluate.py").write_text("raise SystemExit(3)\n")
    run_git(root, "commit", "-q", "-a", "-m", "broken")
    make_clone(record(root), root, tmp_path / "clone")
    with pytest.raises(
        ValueError, match=r"clone: `dvc repro dvc.yaml:evaluate` ended with status \d+, see above"
    ):
        run_pipeline(record(root), root, tmp_path / "clone")


@pytest.fixture
def reproduce(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command, of a run that another project's MLflow holds."""
    artifact = artifacts({NAME: write_card(root)})
    monkeypatch.setattr("passerelle.run_folder.repository_root", lambda: root)
    monkeypatch.setattr("passerelle.recorded_runs.read_run", lambda run: Recorded("1f2e", "phrases", {}))
    monkeypatch.setattr("passerelle.recorded_runs.artifact_file", lambda run, name, folder: artifact(name))
    monkeypatch.delenv("PASSERELLE_RUNS", raising=False)

    def run(*arguments: str) -> None:
        parser = argparse.ArgumentParser()
        command.add(parser.add_subparsers())
        parsed = parser.parse_args(["reproduce", *arguments])
        parsed.run(parsed)

    return run


def test_the_command_checks_without_running(
    reproduce: Any, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce("1f2e", "--check")
    lines = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["run", "1f2e"]
    assert {state for state, _ in lines[1:]} == {"found"}
    assert not (root / ".runs").exists()


def test_the_command_stops_at_a_missing_link(
    reproduce: Any, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_git(root, "commit", "-q", "--amend", "-m", "another")
    subprocess.run(["git", "reflog", "expire", "--expire=now", "--all"], cwd=root, check=True)
    subprocess.run(["git", "gc", "-q", "--prune=now"], cwd=root, check=True)
    with pytest.raises(ValueError, match=r"run 1f2e cannot be made again: commit missing, see above"):
        reproduce("1f2e")
    assert "missing  commit" in capsys.readouterr().out


def test_the_command_makes_a_run_again(reproduce: Any, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reproduce("1f2e")
    assert capfd.readouterr().out.endswith("reproduced: every score within 1.0 points\n")
    assert (root / ".runs/reproduced/1f2e/metrics/evaluation.json").is_file()
    (root / ".runs/reproduced/1f2e/src/answer.py").write_text("POINTS = 34.0\n")
    with pytest.raises(ValueError, match=r"not the same within 1.0 points: bleu was 35.00 and is 39.00"):
        reproduce("1f2e", "--tolerance", "1")
