"""The name of a run changes with everything that determines its result, and with nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from passerelle.config import LanguagesConfig, ModelConfig, TrainingConfig, TrainParams
from passerelle.training import fingerprint
from passerelle.training.fingerprint import code_sha256, run_fingerprint

TOKENIZER = "7" * 64


def params(**training: Any) -> TrainParams:
    return TrainParams(languages=LanguagesConfig(), model=ModelConfig(), training=TrainingConfig(**training))


def write_manifests(folder: Path, train: str = "a", valid: str = "b", tokenizer: str = TOKENIZER) -> Path:
    for split, content in (("train", train), ("valid", valid), ("test", "c")):
        (folder / split).mkdir(parents=True, exist_ok=True)
        hashes = {"content_sha256": content, "tokenizer_sha256": tokenizer}
        counts = dict.fromkeys(
            ("vocab_size", "max_tokens", "rows", "source_tokens", "target_tokens", "bytes"), 9
        )
        counts |= {"source_truncated": 0, "target_truncated": 0}
        shard = {"file": "shard-00000.arrow", "rows": 9, "source_tokens": 9, "target_tokens": 9, "bytes": 9}
        lengths = {"source_lengths": {"1": 9}, "target_lengths": {"1": 9}}
        manifest = {"schema_version": 1, **hashes, **counts, **lengths, "shards": [{**shard, "sha256": "d"}]}
        (folder / split / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_the_same_input_gives_the_same_name_anywhere(tmp_path: Path) -> None:
    here, there = write_manifests(tmp_path / "here"), write_manifests(tmp_path / "there")
    name = run_fingerprint(params(), here, TOKENIZER)
    assert name == run_fingerprint(params(), there, TOKENIZER)
    assert len(name) == 16
    assert int(name, 16) >= 0


def test_a_changed_parameter_gives_another_name(tmp_path: Path) -> None:
    shards = write_manifests(tmp_path)
    names = {
        run_fingerprint(params(**changed), shards, TOKENIZER)
        for changed in ({}, {"seed": 1}, {"max_steps": 3001}, {"clip_norm": None}, {"average_of": "best"})
    }
    assert len(names) == 5


def test_changed_data_give_another_name(tmp_path: Path) -> None:
    names = {
        run_fingerprint(params(), write_manifests(tmp_path / str(number), **content), TOKENIZER)
        for number, content in enumerate(({}, {"train": "x"}, {"valid": "x"}))
    }
    assert len(names) == 3


def test_another_tokenizer_gives_another_name(tmp_path: Path) -> None:
    other = write_manifests(tmp_path / "other", tokenizer="8" * 64)
    name = run_fingerprint(params(), write_manifests(tmp_path / "one"), TOKENIZER)
    assert run_fingerprint(params(), other, "8" * 64) != name


def test_shards_of_another_tokenizer_are_refused(tmp_path: Path) -> None:
    shards = write_manifests(tmp_path, tokenizer="8" * 64)
    with pytest.raises(ValueError, match=r"made with tokenizer 8{64}.* is 7{64}; run stage shards again"):
        run_fingerprint(params(), shards, TOKENIZER)


@pytest.mark.parametrize("part", ["data", "nn", "training"])
def test_changed_code_gives_another_name(tmp_path: Path, part: str) -> None:
    for folder in ("data", "nn", "training"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "code.py").write_text("x = 1\n")
    (tmp_path / "models.py").write_text("")
    before = code_sha256(tmp_path)
    (tmp_path / part / "notes.txt").write_text("no code")
    (tmp_path / "cli.py").write_text("y = 3\n")
    assert code_sha256(tmp_path) == before
    (tmp_path / part / "code.py").write_text("x = 2\n")
    assert code_sha256(tmp_path) != before


def test_a_renamed_file_gives_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "SOURCES", ("nn",))
    (tmp_path / "nn").mkdir()
    (tmp_path / "nn" / "a.py").write_text("x = 1\n")
    before = code_sha256(tmp_path)
    (tmp_path / "nn" / "a.py").rename(tmp_path / "nn" / "b.py")
    assert code_sha256(tmp_path) != before


def test_the_code_is_part_of_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = write_manifests(tmp_path / "shards")
    before = run_fingerprint(params(), shards, TOKENIZER)
    monkeypatch.setattr(fingerprint, "SOURCES", ("nn",))
    assert run_fingerprint(params(), shards, TOKENIZER) != before
