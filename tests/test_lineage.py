"""The card of a score names all that it comes from, and nothing of where the project lies."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ruamel.yaml import YAML

from passerelle.config import ShardsConfig
from passerelle.data.shards import write_shards
from passerelle.data.tokenizer import load_tokenizer
from passerelle.files import sha256_of_file
from passerelle.identity import identity
from passerelle.lineage import identity_sections, lineage_card, params_of_stages
from small_model import SOURCES, TARGETS, write_small_model

LOCK: dict[str, Any] = {
    "schema": "2.0",
    "stages": {
        "prepare": {
            "params": {"params.yaml": {"split": {"seed": 3, "test_sentences": 9}, "languages": {"source": "en"}}},
            "outs": [{"path": "data/prepared", "md5": "12ab.dir"}],
        },
        "tokenizer": {"params": {"params.yaml": {"tokenizer": {"kind": "unigram"}}}},
        "train@wide": {
            "params": {
                "params.yaml": {"model": {"d_model": 8, "norm": "pre"}, "training": {"seed": 5, "max_steps": 70}},
                "wide/params.yaml": {"model": {"d_model": 32}},
            }
        },
        "train@deep": {
            "params": {"params.yaml": {"model": {"d_model": 8}}, "deep/params.yaml": {"model": {"d_model": 9}}}
        },
        "evaluate@wide": {"params": {"wide/params.yaml": {"model": {"d_model": 31}}}},  # of an earlier evaluation
    },
}  # fmt: skip


def write_lock(folder: Path) -> Path:
    with (folder / "dvc.lock").open("w", encoding="utf-8") as file:
        YAML().dump(LOCK, file)
    return folder / "dvc.lock"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`project/examples/small`, evaluated once, with the model of its variant `wide`."""
    root = tmp_path_factory.mktemp("project")
    folder = root / "examples" / "small"
    (folder / "wide").mkdir(parents=True)
    write_small_model(folder / "wide")
    tokenizer = load_tokenizer(folder / "wide" / "tokenizer")
    for split in ("train", "valid", "test"):
        write_shards(
            folder / "wide" / "train.parquet", folder / "data" / "shards" / split, tokenizer, ShardsConfig()
        )
    table = pa.table({"source": SOURCES[:3], "references": [[text] for text in TARGETS[:3]]})
    pq.write_table(table, folder / "test.parquet")
    write_lock(folder)
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True)
    return folder


@pytest.fixture
def card(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(pipeline)
    for name in ("DVC_ROOT", "DVC_STAGE", "DVC_EXP_NAME"):
        monkeypatch.delenv(name, raising=False)
    return lineage_card(
        root=pipeline.parents[1],
        tags=identity(pipeline.parents[1]),
        model_folder=Path("wide/model"),
        shards=Path("data/shards"),
        test=Path("test.parquet"),
        params={"decoding": {"beam_size": 5, "seed": 0}, "evaluation": {"seed": 7}},
        scores={"bleu": 41.5, "bleu_low": 40.0},
        signatures={"bleu": "nrefs:var|case:mixed"},
        seconds={"training": 12.345, "evaluation": 2.0},
    )


def test_the_card_names_data_model_and_code(card: dict[str, Any], pipeline: Path) -> None:
    manifest = json.loads((pipeline / "data/shards/train/manifest.json").read_text(encoding="utf-8"))
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=pipeline, capture_output=True, text=True, check=True
    )
    assert card["run"] == {"fingerprint": "0123456789abcdef", "folder": "examples/small", "variant": "wide"}
    assert card["data"]["shards_sha256"]["train"] == manifest["content_sha256"]
    assert set(card["data"]["shards_sha256"]) == {"train", "valid", "test"}
    assert card["data"]["test_sha256"] == sha256_of_file(pipeline / "test.parquet")
    assert card["data"]["dvc_md5"] == {"data/prepared": "12ab.dir"}
    assert card["tokenizer"]["sha256"] == sha256_of_file(pipeline / "wide/model/tokenizer.model")
    assert card["model"]["sha256"] == sha256_of_file(pipeline / "wide/model/weights.safetensors")
    assert card["code"]["commit"] == commit.stdout.strip()
    assert card["code"]["dirty"] is False


def test_the_card_has_parameters_seeds_scores_and_times(card: dict[str, Any]) -> None:
    assert card["split"] == {"seed": 3, "test_sentences": 9}
    assert card["parameters"]["model"] == {"d_model": 32, "norm": "pre"}
    assert card["parameters"]["decoding"]["beam_size"] == 5
    assert card["seeds"] == {"split.seed": 3, "training.seed": 5, "decoding.seed": 0, "evaluation.seed": 7}
    assert card["scores"]["bleu"] == 41.5
    assert card["signatures"] == {"bleu": "nrefs:var|case:mixed"}
    assert (card["time"]["training_seconds"], card["time"]["evaluation_seconds"]) == (12.3, 2.0)
    assert card["time"]["date"].endswith("+00:00")
    assert {"torch", "python"} <= card["versions"].keys()
    assert {"processor", "cpus"} <= card["machine"].keys()


def test_the_card_is_json_and_says_not_where_the_project_lies(card: dict[str, Any], pipeline: Path) -> None:
    text = json.dumps(card, allow_nan=False)
    assert json.loads(text) == card
    assert str(pipeline.parents[1]) not in text


def test_a_copy_that_dvc_made_for_an_experiment_names_the_same_folder(
    pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from passerelle.lineage import _folder

    copy = tmp_path / "copy" / "examples" / "small"
    copy.mkdir(parents=True)
    monkeypatch.chdir(copy)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path / "copy"))
    assert _folder(pipeline.parents[1]) == "examples/small"
    monkeypatch.setenv("DVC_ROOT", str(tmp_path / "another"))
    assert _folder(pipeline.parents[1]) == "."


def test_parameters_are_those_that_the_stages_ran_with(tmp_path: Path) -> None:
    """What the evaluation and another variant recorded earlier is not among them."""
    lock = write_lock(tmp_path)
    wide = params_of_stages(lock, "wide")
    assert wide["model"] == {"d_model": 32, "norm": "pre"}
    assert list(wide) == ["split", "languages", "tokenizer", "model", "training"]
    assert params_of_stages(lock, "deep")["model"] == {"d_model": 9}
    assert set(params_of_stages(lock)) == {"split", "languages", "tokenizer"}
    assert params_of_stages(tmp_path / "absent.lock") == {}


def test_tags_of_a_run_give_the_same_sections(pipeline: Path) -> None:
    tags = {**identity(pipeline.parents[1]), "training.seed": "3", "mlflow.runName": "x", "git.dirty": "true"}
    sections = identity_sections(tags)
    assert sections["code"]["dirty"] is True
    assert sections["versions"]["python"] == tags["version.python"]
    assert sections.keys() <= {"code", "data", "versions", "machine", "experiment"}
    assert identity_sections({"dvc.md5.data/raw": "ab", "dvc.exp_name": "red-fox"}) == {
        "data": {"dvc_md5": {"data/raw": "ab"}},
        "experiment": {"exp_name": "red-fox"},
    }
