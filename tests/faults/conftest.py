"""A working folder before stage `train`, and what training there, undisturbed, comes to; one where all others ran."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from corpus_server import CorpusServer, corpus_server
from made_once import made_once
from passerelle.config import ShardsConfig, TokenizerConfig, TrainParams
from passerelle.data.pairs import open_shards
from passerelle.data.shards import write_shards
from passerelle.data.tokenizer import load_tokenizer, train_tokenizer
from passerelle.models import build_model
from passerelle.params_file import load_params
from passerelle.training.checkpoint import latest_checkpoint, read_checkpoint, save_checkpoint
from passerelle.training.group import ALONE
from passerelle.training.loop import train
from small_model import SOURCES, TARGETS
from source_imports import ROOT
from stage_process import (
    CORPUS_STAGES,
    Place,
    place_of,
    write_params,
    write_trained,
)

SMALL = {
    "d_model": 16,
    "num_heads": 2,
    "num_layers": 1,
    "d_ff": 24,
    "precision": "fp32",
    "micro_batch_tokens": 64,
    "max_steps": 280,
    "warmup_steps": 20,
    "validate_every": 40,
    "average_checkpoints": 1,
}


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    for key, value in SMALL.items():
        text, count = re.subn(rf"(?m)^(  {key}:) \S+", rf"\1 {value}", text)
        assert count == 1, key
    (folder / "params.yaml").write_text(text, encoding="utf-8")
    targets = (TARGETS * 2)[: len(SOURCES)]
    prepared = folder / "data" / "prepared"
    prepared.mkdir(parents=True)
    for split, rows in (("train", slice(0, None)), ("valid", slice(0, None, 3))):
        table = pa.table({"source": SOURCES[rows], "target": targets[rows]})
        if split == "valid":
            references = [[target] for target in targets[rows]]
            table = pa.table({"source": SOURCES[rows], "references": references, "group": SOURCES[rows]})
        pq.write_table(table, prepared / f"{split}.parquet")
    train_tokenizer(
        prepared / "train.parquet", folder / "data" / "tokenizer", TokenizerConfig(vocab_size=300)
    )
    tokenizer = load_tokenizer(folder / "data" / "tokenizer")
    for split in ("train", "valid"):
        write_shards(
            prepared / f"{split}.parquet", folder / "data" / "shards" / split, tokenizer, ShardsConfig()
        )
    return folder


@pytest.fixture(scope="session")
def params(corpus: Path) -> TrainParams:
    return load_params(TrainParams, corpus / "params.yaml")


@pytest.fixture(scope="session")
def vocab_size(corpus: Path) -> int:
    return load_tokenizer(corpus / "data" / "tokenizer").vocab_size


@pytest.fixture(scope="session")
def undisturbed(
    corpus: Path, params: TrainParams, vocab_size: int, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, torch.Tensor]:
    """The last checkpoint's tensors after training in this process, without Ray."""

    def make(folder: Path) -> None:
        torch.manual_seed(params.training.seed)
        train(
            build_model(params.model, vocab_size),
            open_shards(corpus / "data" / "shards" / "train"),
            open_shards(corpus / "data" / "shards" / "valid"),
            params.training,
            device=torch.device("cpu"),
            group=ALONE,
            report=lambda report: save_checkpoint(folder, report.step, report.write),
            save=lambda step, write: None,
            stop=lambda: False,
            progress=lambda progress: None,
        )

    latest = latest_checkpoint(made_once(tmp_path_factory, "undisturbed", make))
    assert latest is not None
    return read_checkpoint(latest)[0]


@pytest.fixture(scope="session")
def server() -> Iterator[CorpusServer]:
    with corpus_server() as server:
        yield server


@pytest.fixture(autouse=True)
def _server_goes_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """Also after a test that failed while it held the server."""
    yield
    if "server" in request.fixturenames:
        request.getfixturevalue("server").may_go_on.set()


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, server: CorpusServer, empty_store: Path) -> Place:
    """All stages have run, undisturbed."""
    url = f"http://127.0.0.1:{server.server_port}/pairs.txt"

    def make(folder: Path) -> None:
        place = place_of(folder / "tree", Path(shutil.copy(empty_store, folder)))
        place.folder.mkdir()
        write_params(place.folder, url)
        for stage in CORPUS_STAGES:
            place.run(stage)
        write_trained(place.folder)
        place.run("evaluate")

    made = made_once(tmp_path_factory, "finished", make)
    folder = Path(shutil.copytree(made, tmp_path_factory.mktemp("finished") / "own"))
    write_params(folder / "tree", url)  # of this process's own server
    return place_of(folder / "tree", folder / "mlflow.db")
