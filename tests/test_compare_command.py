"""`passerelle compare` of files, folders, revisions, experiments and runs."""

import json
import os
import shutil
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import pytest
from sacrebleu import corpus_bleu, corpus_chrf, corpus_ter

from passerelle.cli import main
from passerelle.evaluation.scores import sentence_chrf
from passerelle.recorded_runs import RecordedRun

# From a library below DVC, about its own use of itself.
pytestmark = pytest.mark.filterwarnings("ignore:_NoneStep.value will soon:DeprecationWarning")

ROOT = Path(__file__).parents[1]
SOURCES = ["Go on.", "We see a boat.", "They hide.", "You sell plums.", "<b>Bye</b>"]
REFERENCES = [
    ["continuez donc .", "vas-y donc ."],
    ["nous voyons un bateau ."],
    ["ils se cachent ici ."],
    ["vous vendez des prunes .", "tu vends des prunes ."],
    ["<b>au revoir</b>"],
]
ORDINARY = [
    "continuez .",
    "nous voyons une barque .",
    "ils cachent ici .",
    "vous vendez des prunes .",
    "<b>oui</b>",
]
BOLDER = [
    "va donc .",
    "nous voyons un bateau .",
    "ils se cachent ici .",
    "vous vendez des prunes .",
    "<b>oui</b>",
]
STAGE = """\
stages:
  evaluate:
    cmd: cp -r made evaluation
    deps: [made]
    outs: [evaluation]
"""


def write_translations(folder: Path, hypotheses: list[str], num_sentences: int = 5) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "translations.jsonl").open("w", encoding="utf-8") as file:
        for number in range(num_sentences):
            row = {
                "source": SOURCES[number],
                "references": REFERENCES[number],
                "hypothesis": hypotheses[number],
                "group": f"g{number}",
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return folder / "translations.jsonl"


def output_of(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(["compare", *arguments])
    return capfd.readouterr().out


def in_project(folder: Path, *command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DVC_")}
    environment |= {"DVC_NO_ANALYTICS": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@example.org"}
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits and an experiment of a pipeline in `project/small`, and a commit before it.

    HEAD translated like ORDINARY, the experiment `bolder` like BOLDER; `before` has no pipeline.
    """
    folder = tmp_path_factory.mktemp("project")
    dvc = [sys.executable, "-m", "dvc"]
    small = folder / "small"
    small.mkdir()
    in_project(folder, "git", "init", "-q", "-b", "main", ".")
    in_project(folder, *dvc, "init", "-q")
    in_project(folder, "git", "commit", "-q", "-m", "Before")
    in_project(folder, "git", "tag", "before")
    (small / "dvc.yaml").write_text(STAGE, encoding="utf-8")
    (small / ".gitignore").write_text("/evaluation\n", encoding="utf-8")
    write_translations(small / "made", ORDINARY)
    in_project(small, *dvc, "repro", "-q")
    in_project(folder, "git", "add", ".")
    in_project(folder, "git", "commit", "-q", "-m", "Ordinary")
    in_project(folder, "git", "branch", "evaluation")
    write_translations(small / "made", BOLDER)
    in_project(small, *dvc, "repro", "-q")
    in_project(small, *dvc, "exp", "save", "-q", "--name", "bolder")
    return folder


def test_the_table_has_the_scores_of_sacrebleu(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first, second = (
        write_translations(tmp_path / "one", ORDINARY),
        write_translations(tmp_path / "two", BOLDER),
    )
    output = output_of(capfd, str(first), str(second.parent))
    assert f"A  {first}\nB  {second}\n" in output
    sets = [list(texts) for texts in zip_longest(*REFERENCES)]
    for name, values in (
        ("BLEU", [corpus_bleu(texts, sets).score for texts in (ORDINARY, BOLDER)]),
        ("chrF++", [corpus_chrf(texts, sets, word_order=2).score for texts in (ORDINARY, BOLDER)]),
        ("TER (low is good)", [corpus_ter(texts, sets).score for texts in (ORDINARY, BOLDER)]),
    ):
        [line] = [line for line in output.splitlines() if line.startswith(f"{name:17}")]
        numbers = line.removeprefix(name).split()
        assert numbers[:3] == [f"{values[0]:.1f}", f"{values[1]:.1f}", f"{values[1] - values[0]:+.1f}"]
        assert 0 < float(numbers[-1]) <= 1
    assert "BLEU  nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:" in output
    assert output.endswith("interval:95%|bootstrap:1000|over:5 groups|seed:12345\n")


def test_the_sentences_that_changed_most_are_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = (
        write_translations(tmp_path / "one", ORDINARY),
        write_translations(tmp_path / "two", BOLDER),
    )
    output = output_of(capfd, str(first), str(second), "--changed", "2")
    assert "3 of 5 translations differ; by their chrF, B's is better in 2, worse in 1, as good in 0" in output
    scores = [sentence_chrf(texts, REFERENCES) for texts in (ORDINARY, BOLDER)]
    changes = sorted(range(5), key=lambda index: -abs(scores[1][index] - scores[0][index]))[:2]
    for index in changes:
        before, after = scores[0][index], scores[1][index]
        block = [f"{after - before:+.1f}  sentence {index}, chrF {before:.1f} to {after:.1f}"]
        block.append(f"  source     {SOURCES[index]}")
        block += [f"  reference  {text}" for text in REFERENCES[index]]
        block += [f"  A          {ORDINARY[index]}", f"  B          {BOLDER[index]}"]
        assert "\n".join(block) in output
    assert output.count("  source     ") == 2


def test_params_here_say_how_often_to_draw(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_translations(tmp_path / "one", ORDINARY)
    params = (ROOT / "params.yaml").read_text(encoding="utf-8")
    (tmp_path / "params.yaml").write_text(params.replace("bootstrap_samples: 1000", "bootstrap_samples: 250"))
    monkeypatch.chdir(tmp_path)
    assert "bootstrap:250|" in output_of(capfd, "one", "one")


def test_a_revision_and_an_experiment_are_read_from_the_cache(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "small")
    output = output_of(capfd, "main", "bolder")
    lines = output.splitlines()
    assert lines[0].startswith("A  main (commit ")
    assert lines[0].endswith(", small/evaluation/translations.jsonl)")
    assert lines[1].startswith("B  bolder (commit ")
    assert f"  A          {ORDINARY[1]}\n  B          {BOLDER[1]}" in output
    from_above = output_of(capfd, "main", "bolder", "--evaluation", "../small/evaluation")
    assert from_above == output


def test_a_path_goes_before_a_revision_of_that_name(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "small")
    lines = output_of(capfd, "evaluation", "refs/heads/evaluation").splitlines()
    assert lines[0] == "A  evaluation/translations.jsonl"
    assert lines[1].startswith("B  refs/heads/evaluation (commit ")


def test_a_run_is_asked_of_mlflow_by_id_or_fingerprint(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {"0" * 32: ("0" * 32, ORDINARY), "1f" * 8: ("e3" * 16, BOLDER)}

    def recorded(name: str) -> RecordedRun:
        return RecordedRun(runs[name][0], "passerelle", {}, {}, {})

    def fetched(run_id: str, path: str, folder: Path) -> Path:
        assert path == "evaluation/translations.jsonl"
        return write_translations(folder / "evaluation", dict(runs.values())[run_id])

    monkeypatch.setattr("passerelle.recorded_runs.read_run", recorded)
    monkeypatch.setattr("passerelle.recorded_runs.artifact_file", fetched)
    monkeypatch.chdir(tmp_path)
    output = output_of(capfd, *runs)
    assert output.startswith(f"A  MLflow run {'0' * 32}\nB  MLflow run {'e3' * 16}\n")
    assert f"  A          {ORDINARY[1]}\n  B          {BOLDER[1]}" in output


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["main", "absent"],
            "absent: neither a file, nor a folder with translations.jsonl, nor a revision or",
        ),
        (["small", "main"], "small: neither a file, nor a folder with translations.jsonl, nor a revision or"),
        (
            ["before", "main"],
            "before: this revision has no small/evaluation/translations.jsonl that DVC can reach",
        ),
        (["main", "short"], "main (commit "),
        (["main", "dvc.yaml"], "dvc.yaml, line 1: not JSON (Expecting value"),
        (["main", ""], ": neither a file, nor"),
    ],
)
def test_a_fault_is_one_readable_line(
    names: list[str], message: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "small")
    write_translations(project / "small/short", BOLDER, num_sentences=4)
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *names])
    assert str(stopped.value).startswith(f"error: {message}")
    assert "\n" not in str(stopped.value)


def test_an_output_that_left_the_cache_is_told(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns("cache"))
    monkeypatch.chdir(copy / "small")
    with pytest.raises(SystemExit) as stopped:
        main(["compare", "evaluation", "main"])
    message = str(stopped.value)
    assert message.startswith(
        "error: main: this revision has no small/evaluation/translations.jsonl that DVC can"
    )
    assert message.endswith("and is its output in the cache or the remote?")


def test_outside_a_repository_there_are_no_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        SystemExit, match=r"^error: main: neither a file, nor a folder with translations\.jsonl"
    ):
        main(["compare", "main", "main"])
