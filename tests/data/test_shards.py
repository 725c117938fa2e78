"""Shards hold every sentence, and are the same bytes each time."""

import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from passerelle.config import ShardsConfig
from passerelle.data.pairs import SentencePairs, open_shards, verify_shards
from passerelle.data.shards import shard_metrics, write_shards
from passerelle.data.tokenizer import Tokenizer
from small_corpus import SEVERAL, SOURCES, TARGETS, write_test, write_train

ROOT = Path(__file__).parents[2]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def texts_of(pairs: SentencePairs, tokenizer: Tokenizer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    rows = range(len(pairs))
    return (
        tuple(tokenizer.decode(pairs.source(row).tolist()) for row in rows),
        tuple(tokenizer.decode(pairs.target(row).tolist()) for row in rows),
    )


def test_shards_hold_every_pair_in_order(folder: Path, unigram: Tokenizer) -> None:
    pairs = open_shards(folder)
    assert len(pairs.shard_rows) > 5
    assert texts_of(pairs, unigram) == (SOURCES, TARGETS)


def test_the_target_of_a_test_pair_is_its_first_reference(unigram: Tokenizer, tmp_path: Path) -> None:
    references = [[target, "autre chose"] for target in TARGETS]
    test = write_test(tmp_path / "test.parquet", SOURCES, references)
    write_shards(test, tmp_path / "shards", unigram, ShardsConfig())
    assert texts_of(open_shards(tmp_path / "shards"), unigram) == (SOURCES, TARGETS)


def test_the_real_corpus_is_held_whole(
    fra_eng_sample: tuple[list[str], list[str]], unigram: Tokenizer, tmp_path: Path
) -> None:
    train = write_train(tmp_path / "train.parquet", *fra_eng_sample)
    write_shards(train, tmp_path / "shards", unigram, ShardsConfig(max_tokens=1000, shard_bytes=200_000))
    verify_shards(tmp_path / "shards")
    pairs = open_shards(tmp_path / "shards")
    assert len(pairs.shard_rows) > 2
    assert [list(side) for side in texts_of(pairs, unigram)] == list(fra_eng_sample)


@pytest.mark.parametrize("batch_rows", [1, 7, 64])
def test_bytes_do_not_depend_on_batches_or_place(
    batch_rows: int, folder: Path, small_train: Path, unigram: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passerelle.data.prepared.BATCH_ROWS", batch_rows)
    other = folder.parent / "elsewhere" / "again"
    write_shards(small_train, other, unigram, SEVERAL)
    assert contents(other) == contents(folder)


def test_a_shard_ends_with_the_row_that_fills_it(folder: Path) -> None:
    pairs = open_shards(folder)
    for source, target in list(zip(pairs.source_shards, pairs.target_shards, strict=True))[:-1]:
        row_bytes = 2 * (source.lengths + target.lengths) + 8
        assert row_bytes.sum() >= SEVERAL.shard_bytes > row_bytes[:-1].sum()


def test_long_sentences_are_cut_and_counted(small_train: Path, unigram: Tokenizer, tmp_path: Path) -> None:
    config = ShardsConfig(max_tokens=18)
    manifest = write_shards(small_train, tmp_path / "shards", unigram, config)
    pairs = open_shards(tmp_path / "shards")
    for side, texts in (("source", SOURCES), ("target", TARGETS)):
        encoded = [unigram.encode(text) for text in texts]
        assert [getattr(pairs, side)(row).tolist() for row in range(64)] == [ids[:18] for ids in encoded]
        assert manifest[f"{side}_truncated"] == sum(len(ids) > 18 for ids in encoded) > 0
    assert manifest["source_truncated"] != manifest["target_truncated"]


def test_the_manifest_counts_what_is_there(folder: Path, unigram: Tokenizer) -> None:
    manifest = open_shards(folder).manifest
    lengths = {
        "source": [len(unigram.encode(text)) for text in SOURCES],
        "target": [len(unigram.encode(text)) for text in TARGETS],
    }
    assert (manifest["rows"], manifest["vocab_size"], manifest["max_tokens"]) == (64, unigram.vocab_size, 40)
    for side, counts in lengths.items():
        assert manifest[f"{side}_tokens"] == sum(counts)
        assert manifest[f"{side}_lengths"] == {str(n): k for n, k in sorted(Counter(counts).items())}
        assert manifest[f"{side}_truncated"] == 0
    for total in ("rows", "source_tokens", "target_tokens", "bytes"):
        assert manifest[total] == sum(shard[total] for shard in manifest["shards"])
    files = [folder / shard["file"] for shard in manifest["shards"]]
    assert sorted(files) == sorted(folder.glob("*.arrow"))
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    assert [shard["sha256"] for shard in manifest["shards"]] == hashes
    content = "".join(f"{one}\n" for one in hashes).encode()
    assert manifest["content_sha256"] == hashlib.sha256(content).hexdigest()
    assert manifest["tokenizer_sha256"] == unigram.sha256


def test_metrics_are_numbers(small_train: Path, unigram: Tokenizer, tmp_path: Path) -> None:
    config = ShardsConfig(max_tokens=18)
    metrics = shard_metrics(write_shards(small_train, tmp_path / "shards", unigram, config))
    num_tokens = sum(min(len(unigram.encode(text)), 18) for text in TARGETS)
    assert metrics["target_tokens"] == num_tokens
    assert metrics["target_tokens_mean"] == pytest.approx(num_tokens / 64, abs=1e-4)
    assert {type(value) for value in metrics.values()} == {int, float}


@pytest.mark.parametrize(("vocab_size", "id_type"), [(65_536, np.uint16), (65_537, np.int32)])
def test_ids_take_two_bytes_where_the_vocabulary_fits(vocab_size: int, id_type: type, tmp_path: Path) -> None:
    largest = vocab_size - 1

    def encode_batch(texts: list[str]) -> list[list[int]]:
        return [[largest] * len(text) for text in texts]

    tokenizer: Any = SimpleNamespace(vocab_size=vocab_size, sha256="0" * 64, encode_batch=encode_batch)
    train = write_train(tmp_path / "train.parquet", ["abc", ""], ["a", "abcde"])
    write_shards(train, tmp_path / "shards", tokenizer, ShardsConfig())
    pairs = open_shards(tmp_path / "shards")
    assert pairs.source(0).dtype == id_type
    assert pairs.source(0).tolist() == [largest] * 3
    assert pairs.source_lengths.tolist() == [3, 0]
    assert pairs.target_lengths.tolist() == [1, 5]


def test_a_failure_leaves_the_old_shards_alone(
    folder: Path, unigram: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passerelle.data.prepared.BATCH_ROWS", 20)
    before = contents(folder)
    references = [[target] for target in TARGETS[:-1]] + [[]]
    broken = write_test(folder.parent / "test.parquet", SOURCES, references)
    with pytest.raises(ValueError, match=r"test.parquet: 1 rows have no references; run stage prepare again"):
        write_shards(broken, folder, unigram, SEVERAL)
    assert contents(folder) == before
    assert {path.name for path in folder.parent.iterdir()} == {"shards", "test.parquet", "train.parquet"}


def test_an_empty_split_is_refused(unigram: Tokenizer, tmp_path: Path) -> None:
    empty = write_train(tmp_path / "valid.parquet", [], [])
    with pytest.raises(ValueError, match=r"valid.parquet: no sentence pairs; see the counts"):
        write_shards(empty, tmp_path / "shards", unigram, ShardsConfig())


def test_the_two_stages_make_shards_of_three_splits(small_train: Path, tmp_path: Path) -> None:
    prepared = tmp_path / "data" / "prepared"
    prepared.mkdir(parents=True)
    small_train.rename(prepared / "train.parquet")
    write_test(prepared / "valid.parquet", SOURCES[:3], [[target] for target in TARGETS[:3]])
    write_test(prepared / "test.parquet", SOURCES[:5], [[target] for target in TARGETS[:5]])
    params = (ROOT / "params.yaml").read_text().replace("vocab_size: 8000", "vocab_size: 310")
    (tmp_path / "params.yaml").write_text(params)
    for stage in ("tokenizer", "shards"):
        subprocess.run([sys.executable, ROOT / "pipeline" / f"{stage}.py"], cwd=tmp_path, check=True)
    metrics = json.loads((tmp_path / "metrics" / "shards.json").read_text())
    assert {split: metrics[split]["rows"] for split in metrics} == {"train": 64, "valid": 3, "test": 5}
    assert len(open_shards(tmp_path / "data" / "shards" / "test")) == 5
