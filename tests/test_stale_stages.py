"""A changed knob makes the stages stale that it touches, and no others, by DVC's own word."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from dvc.repo import Repo

from dvc_stages import CORPUS_STAGES, STAGES, TEXTBOOK, outputs, read_stages, variants, yaml
from passerelle import config
from source_imports import ROOT

# From a library below DVC, about its own use of itself.
pytestmark = pytest.mark.filterwarnings("ignore:_NoneStep.value will soon:DeprecationWarning")

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
WITH_THOSE_BEHIND = {
    "decoding.beam_size": {"evaluate"},
    "training.seed": set(STAGES) - CORPUS_STAGES,
    "split.seed": set(STAGES) - {"fetch"},
}
"""Of some of them all stages that then run again."""
TEXTBOOK_CHANGES = [
    ("params.yaml", "split.train_lines", 500, {"prepare"}),
    ("params.yaml", "training.seed", 77, {"train@transformer", "train@bahdanau"}),
    ("params.yaml", "decoding.beam_size", 4, {"evaluate@transformer", "evaluate@bahdanau", "chapter"}),
    ("bahdanau/params.yaml", "training.max_steps", 7, {"train@bahdanau", "evaluate@bahdanau", "chapter"}),
    (
        "transformer/params.yaml",
        "model.name",
        "bahdanau",
        {"train@transformer", "evaluate@transformer", "chapter"},
    ),
]


def finished(project: Path, place: str) -> Path:
    """A copy of the project whose stages in `place` all count as done: made-up outputs, recorded by DVC."""
    for name in ("src", "pipeline", "examples/textbook"):
        left_out = shutil.ignore_patterns("__pycache__", "*.egg-info", "data", "model", "evaluation", "plots")
        ignore = left_out if name != "src" else shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, project / name, ignore=ignore)
    for name in ("dvc.yaml", "params.yaml", ".gitignore"):
        shutil.copy(ROOT / name, project)
    folder = project / place
    for other in {project, project / "examples/textbook"} - {folder}:
        (other / "dvc.yaml").unlink()
    (folder / "dvc.lock").unlink(missing_ok=True)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    Repo.init(str(project)).close()
    for content in read_stages(folder).values():
        for path in outputs(content):
            for variant in content.get("matrix", {"variant": [""]})["variant"]:
                target = folder / path.replace("${item.variant}", variant)
                target = target if "." in target.name else target / "part"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text("{}", encoding="utf-8")
    (folder / "data/raw/pairs.txt").write_text("Go.\tVa !\n", encoding="utf-8")
    for name in ("train", "valid", "test"):
        (folder / f"data/prepared/{name}.parquet").write_text(name, encoding="utf-8")
    with chdir(project), Repo() as repo:
        repo.commit(force=True)
        assert repo.status() == {}
    return folder


@pytest.fixture(scope="module")
def finished_pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("project"), ".")


@pytest.fixture(scope="module")
def finished_textbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("textbook"), "examples/textbook")


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
def test_a_changed_knob_makes_its_own_stages_stale_and_those_behind(
    params_file: Path, key: str, value: Any, expected: set[str]
) -> None:
    change(params_file, key, value)
    changed, stale = stale_stages(params_file.parent)
    assert changed == expected
    assert stale == WITH_THOSE_BEHIND.get(key, stale)


@pytest.mark.parametrize(("file", "key", "value", "expected"), TEXTBOOK_CHANGES)
def test_a_variants_knob_makes_its_own_stages_stale(
    finished_textbook: Path, file: str, key: str, value: Any, expected: set[str]
) -> None:
    path = finished_textbook / file
    content = path.read_bytes()
    change(path, key, value)
    changed, _ = stale_stages(finished_textbook)
    path.write_bytes(content)
    assert changed == expected


def test_the_textbooks_models_share_their_shards_and_meet_in_the_chapter(finished_textbook: Path) -> None:
    with chdir(finished_textbook), Repo() as repo:
        builds_on = {
            stage.name: {other.name for other in repo.index.graph.successors(stage)}
            for stage in repo.index.graph
        }
    for name in variants(TEXTBOOK):
        assert builds_on[f"train@{name}"] == {"prepare", "tokenizer", "shards"}
        assert f"train@{name}" in builds_on["chapter"]
