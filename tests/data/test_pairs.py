"""Shards are read without copying, and damage to them is noticed."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from passerelle.data.pairs import open_shards, verify_shards


def test_opening_and_reading_a_pair_copies_nothing(folder: Path) -> None:
    before = pa.total_allocated_bytes()
    pairs = open_shards(folder)
    ids = pairs.target(63)
    assert pa.total_allocated_bytes() == before
    assert not ids.flags.writeable
    # What the array shows is the file itself: a byte changed there is changed here.
    first = int(ids[0])
    path = folder / pairs.manifest["shards"][-1]["file"]
    with path.open("r+b") as file:
        file.seek(path.read_bytes().rindex(ids.tobytes()))
        file.write(bytes([first % 256 ^ 1]))
    assert ids[0] == first ^ 1


def test_gather_equals_reading_one_by_one(folder: Path) -> None:
    pairs = open_shards(folder)
    rows = np.random.default_rng(0).integers(0, 64, size=101)
    source, source_offsets, target, target_offsets = pairs.gather(rows)
    for position, row in enumerate(rows):
        begin, end = source_offsets[position : position + 2]
        assert np.array_equal(source[begin:end], pairs.source(row))
        begin, end = target_offsets[position : position + 2]
        assert np.array_equal(target[begin:end], pairs.target(row))
    assert (source_offsets[-1], target_offsets[-1]) == (len(source), len(target))
    assert np.array_equal(np.diff(source_offsets), pairs.source_lengths[rows])
    assert np.array_equal(np.diff(target_offsets), pairs.target_lengths[rows])


def test_gathering_nothing_gives_nothing(folder: Path) -> None:
    assert [part.tolist() for part in open_shards(folder).gather([])] == [[], [0], [], [0]]


def test_lengths_of_a_shard_count_the_end_of_sentence(folder: Path) -> None:
    pairs = open_shards(folder)
    shards = [pairs.shard_lengths(shard) for shard in range(len(pairs.shard_rows))]
    assert [len(source) for source, _ in shards] == pairs.shard_rows
    assert np.array_equal(np.concatenate([source for source, _ in shards]), pairs.source_lengths + 1)
    assert np.array_equal(np.concatenate([target for _, target in shards]), pairs.target_lengths + 1)


@pytest.mark.parametrize("row", [-1, 64])
def test_a_row_that_does_not_exist_is_refused(row: int, folder: Path) -> None:
    pairs = open_shards(folder)
    with pytest.raises(IndexError, match=f"pairs are numbered 0 to 63, asked for {row} to {row}"):
        pairs.source(row)
    with pytest.raises(IndexError, match="pairs are numbered 0 to 63"):
        pairs.gather([5, row])


def edit_manifest(folder: Path, **changes: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def wrong_rows(folder: Path) -> None:
    shards = json.loads((folder / "manifest.json").read_text())["shards"]
    edit_manifest(folder, shards=[shards[0] | {"rows": 3}, *shards[1:]])


def escape(folder: Path) -> None:
    shards = json.loads((folder / "manifest.json").read_text())["shards"]
    edit_manifest(folder, shards=[shards[0] | {"file": "../shard-00000.arrow"}, *shards[1:]])


def overwrite_magic(folder: Path) -> None:
    path = folder / "shard-00000.arrow"
    path.write_bytes(b"?" * path.stat().st_size)


def cut_short(folder: Path) -> None:
    path = folder / "shard-00001.arrow"
    path.write_bytes(path.read_bytes()[:-8])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, r"manifest.json: no such file; run stage shards first"),
        (lambda folder: (folder / "manifest.json").write_text("{"), r"manifest.json: not valid JSON"),
        (lambda folder: (folder / "manifest.json").write_text("[]"), r"schema_version is None"),
        (lambda folder: edit_manifest(folder, schema_version=2), r"schema_version is 2, this code reads 1"),
        (
            lambda folder: edit_manifest(folder, shards=[]),
            r"manifest.json: 'shards': list should have at least 1",
        ),
        (
            lambda folder: edit_manifest(folder, rows="64"),
            r"manifest.json: 'rows': input should be a valid integer",
        ),
        (
            lambda folder: edit_manifest(folder, more=1),
            r"manifest.json: 'more': extra inputs are not permitted",
        ),
        (escape, r"manifest.json: 'shards.0.file': string should match pattern"),
        (
            lambda folder: (folder / "manifest.json").write_text("[" * 99_999),
            r"manifest.json: not valid JSON \(.*rec",
        ),
        (lambda folder: edit_manifest(folder, tokenizer_sha256="ab"), r"shard-00000.arrow: made for .*'ab'"),
        (lambda folder: (folder / "shard-00001.arrow").unlink(), r"shard-00001.arrow: no such file, but"),
        (cut_short, r"shard-00001.arrow: \d+ bytes, but manifest.json says \d+; run stage shards again"),
        (overwrite_magic, r"shard-00000.arrow: not an Arrow file"),
        (wrong_rows, r"shard-00000.arrow: record batches of \[\d+\] rows, but manifest.json says one of 3"),
    ],
)
def test_opening_notices_damage(damage: Callable[[Path], object], message: str, folder: Path) -> None:
    damage(folder)
    with pytest.raises(ValueError, match=message):
        open_shards(folder)


def test_verifying_names_the_shard_and_both_hashes(folder: Path) -> None:
    verify_shards(folder)
    path = folder / "shard-00002.arrow"
    content = bytearray(path.read_bytes())
    expected = hashlib.sha256(content).hexdigest()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    found = hashlib.sha256(content).hexdigest()
    assert len(open_shards(folder)) == 64
    message = f"shard-00002.arrow: sha256 is {found}, but manifest.json says {expected}; the file is damaged"
    with pytest.raises(ValueError, match=message):
        verify_shards(folder)


def test_verifying_notices_a_changed_manifest(folder: Path) -> None:
    edit_manifest(folder, content_sha256="ab")
    message = r"manifest.json: the shards' hashes give [0-9a-f]{64}, but content_sha256 is ab"
    with pytest.raises(ValueError, match=message):
        verify_shards(folder)


def test_verifying_notices_ids_beyond_the_vocabulary_though_the_hashes_are_right(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    edit_manifest(folder, vocab_size=280)
    with pytest.raises(
        ValueError, match=r"shard-00000.arrow: has token ids \d+ to \d+, but the vocabulary has 280"
    ):
        verify_shards(folder)
    edit_manifest(folder, vocab_size=manifest["vocab_size"])
    verify_shards(folder)
