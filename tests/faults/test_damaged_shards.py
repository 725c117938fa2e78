"""A damaged or missing shard is named, with its hashes, before Ray is started."""

import re
import shutil
from pathlib import Path

import pytest

from passerelle.config import TrainParams
from passerelle.files import sha256_of_file
from passerelle.training.ray_train import train_on_ray


@pytest.fixture
def shards(corpus: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(corpus / "data" / "shards", tmp_path / "shards"))


def train(params: TrainParams, shards: Path, vocab_size: int) -> None:
    run_folder = shards.parent / "runs" / "none"
    run_folder.mkdir(parents=True)
    train_on_ray(
        params,
        shards=shards,
        vocab_size=vocab_size,
        run_folder=run_folder,
        on_rows=lambda rows, is_last: None,
        bleu=None,
    )


@pytest.mark.parametrize("split", ["train", "valid"])
def test_a_changed_token_is_found_by_its_shards_hash(
    split: str, shards: Path, params: TrainParams, vocab_size: int
) -> None:
    (shard,) = (shards / split).glob("*.arrow")
    expected = sha256_of_file(shard)
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    found = sha256_of_file(shard)
    with pytest.raises(
        ValueError, match=rf"^{re.escape(str(shard))}: sha256 is {found}, but manifest.json says {expected}; "
    ):
        train(params, shards, vocab_size)


def test_a_missing_shard_is_named(shards: Path, params: TrainParams, vocab_size: int) -> None:
    (shard,) = (shards / "train").glob("*.arrow")
    shard.unlink()
    with pytest.raises(ValueError, match=rf"^{re.escape(str(shard))}: no such file, but manifest.json names"):
        train(params, shards, vocab_size)
