"""Tokenizers and shards of the small corpus, and a sample of the real one."""

import io
import zipfile
from pathlib import Path

import pytest

from passerelle.data.shards import write_shards
from passerelle.data.tokenizer import Tokenizer
from small_corpus import SEVERAL, SOURCES, TARGETS, VOCAB_SIZE, learn, write_train


@pytest.fixture
def small_train(tmp_path: Path) -> Path:
    return write_train(tmp_path / "train.parquet")


@pytest.fixture(scope="session", params=["unigram", "bpe"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A tokenizer of either kind, learnt from the small corpus."""
    folder = tmp_path_factory.mktemp(request.param)
    return learn(SOURCES, TARGETS, folder, kind=request.param, vocab_size=VOCAB_SIZE)


@pytest.fixture(scope="session")
def unigram(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return learn(SOURCES, TARGETS, tmp_path_factory.mktemp("unigram"), vocab_size=VOCAB_SIZE)


@pytest.fixture
def folder(small_train: Path, unigram: Tokenizer, tmp_path: Path) -> Path:
    """The small corpus in several shards."""
    write_shards(small_train, tmp_path / "shards", unigram, SEVERAL)
    return tmp_path / "shards"


@pytest.fixture(scope="session")
def fra_eng_sample(fra_eng_archive: Path) -> tuple[list[str], list[str]]:
    """Every 20th pair of the real corpus, as it stands there: sources, targets."""
    with zipfile.ZipFile(fra_eng_archive) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/fra.txt") and name[0] != "_")
        with io.TextIOWrapper(archive.open(name), encoding="utf-8", newline="\n") as lines:
            rows = [line.rstrip("\n").split("\t") for line in list(lines)[::20]]
    return [row[0] for row in rows], [row[1] for row in rows]
