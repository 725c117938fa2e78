"""`dvc.yaml` says the truth: each stage depends on the code, parameters and files that it uses, no others.

Where a list differs from the code, the failing test prints the lines to paste into `dvc.yaml`.
"""

import ast
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from passerelle import config
from source_imports import ROOT, import_closure, run_nodes, syntax_tree

# From a library below DVC, about its own use of itself.
pytestmark = pytest.mark.filterwarnings("ignore:_NoneStep.value will soon:DeprecationWarning")

yaml = YAML()
PIPELINE = yaml.load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
STAGES = PIPELINE["stages"]
EXAMPLES = sorted(path.parent for path in ROOT.glob("examples/*/params.yaml"))

# A changed knob, and the stages that must then run again themselves; those behind them follow.
CHANGES = [
    ("corpus.attribution", "somebody else", {"fetch"}),
    ("languages.target", "de", {"prepare", "train"}),
    ("cleaning.max_words", 7, {"prepare"}),
    ("split.seed", 1, {"prepare"}),
    ("tokenizer.vocab_size", 7000, {"tokenizer"}),
    ("shards.max_tokens", 100, {"shards"}),
    ("model.dropout", 0.2, {"train"}),
    ("training.seed", 1, {"train"}),
    ("decoding.beam_size", 4, {"evaluate"}),
    ("evaluation.seed", 1, {"evaluate"}),
]
CORPUS_STAGES = {"fetch", "prepare", "tokenizer", "shards"}


def script_of(stage: str) -> Path:
    return ROOT / "pipeline" / f"{stage}.py"


def outputs(stage: str) -> list[str]:
    entries = [*STAGES[stage].get("outs", []), *STAGES[stage].get("metrics", [])]
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]


def in_section(path: str, parent: str) -> bool:
    return path == parent or path.startswith(f"{parent}/")


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_the_code_it_imports(stage: str) -> None:
    needed = [script_of(stage), *sorted(import_closure(script_of(stage)))]
    lines = [f"${{root}}/{path.relative_to(ROOT)}" for path in needed]
    listed = [dep for dep in STAGES[stage]["deps"] if dep.startswith("${root}/")]
    assert listed == lines, f"{stage}.deps must begin with\n" + "\n".join(f"      - {line}" for line in lines)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_the_parameters_it_receives(stage: str) -> None:
    """The script calls `load_params(TrainParams)` or the like; the fields of that class are the list."""
    calls = [
        ast.unparse(node.args[0])
        for node in run_nodes(syntax_tree(script_of(stage)))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("load_params")
    ]
    assert len(calls) == 1
    assert list(STAGES[stage]["params"]) == list(getattr(config, calls[0]).model_fields)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_names_the_files_it_reads_and_writes(stage: str) -> None:
    """Every path written in the script lies in a dependency or an output of its stage, and none is idle."""
    known = [dep for dep in STAGES[stage]["deps"] if not dep.startswith("${root}/")] + outputs(stage)
    folders = {path.split("/")[0] for name in STAGES for path in outputs(name)}
    used = {
        node.value.rstrip("/")
        for node in run_nodes(syntax_tree(script_of(stage)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value.split("/")[0] in folders and " " not in node.value
    }
    for path in used:
        assert any(in_section(path, entry) or in_section(entry, path) for entry in known), path
    for entry in known:
        assert any(in_section(path, entry) or in_section(entry, path) for path in used), f"{entry} is unused"


def test_every_script_is_a_stage() -> None:
    assert {path.stem for path in (ROOT / "pipeline").glob("*.py")} == set(STAGES)
    for stage, content in STAGES.items():
        assert content["cmd"] == f"python ${{root}}/pipeline/{stage}.py"
        assert content["desc"].endswith(".")


def test_every_section_belongs_to_a_stage() -> None:
    listed = {section for stage in STAGES.values() for section in stage["params"]}
    assert listed == set(config.Params.model_fields) - {"root"}


def test_metrics_go_into_git_and_large_outputs_do_not() -> None:
    for stage, content in STAGES.items():
        for entry in content.get("metrics", []):
            assert next(iter(entry.values())) == {"cache": False}, stage
        for entry in content["outs"]:
            ignored = subprocess.run(["git", "check-ignore", "-q", f"{entry}/x"], cwd=ROOT, check=False)
            assert ignored.returncode == 0, f"{entry} is not in .gitignore"


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_an_example_has_the_pipeline_of_the_root(folder: Path) -> None:
    """A copy, not a link: DVC cannot follow links in earlier commits, and then no comparison works."""
    copy = folder / "dvc.yaml"
    assert not copy.is_symlink()
    assert copy.read_bytes() == (ROOT / "dvc.yaml").read_bytes(), f"cp dvc.yaml {copy.relative_to(ROOT)}"


@pytest.fixture(scope="module")
def finished_pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project whose stages all count as done: made-up outputs, recorded by DVC as they are."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("dvc.yaml", "params.yaml", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    for name in ("src", "pipeline"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    Repo.init(str(folder)).close()
    for stage in STAGES:
        for path in outputs(stage):
            target = folder / path if "." in path else folder / path / "part"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("{}", encoding="utf-8")
    (folder / "data/raw/pairs.txt").write_text("Go.\tVa !\n", encoding="utf-8")
    for name in ("train", "valid", "test"):
        (folder / f"data/prepared/{name}.parquet").write_text(name, encoding="utf-8")
    with chdir(folder), Repo() as repo:
        repo.commit(force=True)
        assert repo.status() == {}
    return folder


@pytest.fixture
def params_file(finished_pipeline: Path) -> Iterator[Path]:
    path = finished_pipeline / "params.yaml"
    content = path.read_bytes()
    yield path
    path.write_bytes(content)


def change(path: Path, key: str, value: Any) -> None:
    content = yaml.load(path.read_text(encoding="utf-8"))
    *sections, last = key.split(".")
    section = content[sections[0]] if sections else content
    assert section[last] != value
    section[last] = value
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(content, file)


def stale_stages(folder: Path) -> tuple[set[str], set[str]]:
    """Stages that DVC finds changed, and those together with all stages that build on them."""
    with chdir(folder), Repo() as repo:
        changed = {name.split(":")[-1] for name in repo.status()}
        behind = repo.index.graph.reverse()  # an edge now leads from a stage to one that builds on it
        following = {
            after.name for stage in behind if stage.name in changed for after in nx.descendants(behind, stage)
        }
    return changed, changed | following


def test_every_section_is_among_the_changes() -> None:
    assert {key.split(".")[0] for key, *_ in CHANGES} == set(config.Params.model_fields) - {"root"}


@pytest.mark.parametrize(("key", "value", "expected"), CHANGES)
def test_a_changed_knob_makes_its_own_stages_stale(
    params_file: Path, key: str, value: Any, expected: set[str]
) -> None:
    change(params_file, key, value)
    changed, _ = stale_stages(params_file.parent)
    assert changed == expected


def test_another_beam_reruns_the_evaluation_alone(params_file: Path) -> None:
    change(params_file, "decoding.beam_size", 1)
    _, stale = stale_stages(params_file.parent)
    assert stale == {"evaluate"}


def test_another_training_leaves_the_corpus_stages_alone(params_file: Path) -> None:
    change(params_file, "training.seed", 7)
    _, stale = stale_stages(params_file.parent)
    assert stale == set(STAGES) - CORPUS_STAGES


def test_another_split_reruns_all_behind_it(params_file: Path) -> None:
    change(params_file, "split.seed", 7)
    _, stale = stale_stages(params_file.parent)
    assert stale == set(STAGES) - {"fetch"}
