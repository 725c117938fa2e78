"""BLEU while training is the BLEU of stage `evaluate`, whoever measures it."""

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import Tensor

from passerelle.config import DecodingConfig, LanguagesConfig, TrainingConfig, TrainParams
from passerelle.decoding.translate import translate
from passerelle.evaluation.held_out import read_held_out
from passerelle.evaluation.scores import Resampling, bleu
from passerelle.evaluation.validation_bleu import validation_bleu
from passerelle.model_folder import LoadedModel
from small_model import RECURRENT, SOURCES, small_model

NUM_SENTENCES = 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("validation")


@pytest.fixture(scope="module")
def loaded(folder: Path) -> LoadedModel:
    """A model that speaks at random, and what it says, a little shortened, among the references."""
    model = small_model(folder, RECURRENT)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.model.parameters():
            parameter.copy_(torch.randn_like(parameter) / 3)
    said = [translation.text for translation in translate(model, SOURCES, DecodingConfig(beam_size=1))]
    references = [
        [text[: len(text) - row], "Nous voyons un bateau."][: 1 + row % 2] for row, text in enumerate(said)
    ]
    table = pa.table({"source": SOURCES, "references": references, "group": SOURCES})
    pq.write_table(table, folder / "valid.parquet")
    return model


def measured(
    folder: Path, loaded: LoadedModel, rank: int, num_workers: int, others: Tensor
) -> tuple[float, Tensor]:
    """What a worker measures when the others have counted so much, and its own counts."""
    training = TrainingConfig(bleu_sentences=NUM_SENTENCES)
    params = TrainParams(languages=LanguagesConfig(), model=RECURRENT, training=training)
    asked = pickle.loads(
        pickle.dumps(validation_bleu(params, folder / "valid.parquet", folder / "tokenizer"))
    )
    own: list[Tensor] = []

    def reduce(totals: Tensor) -> None:
        own.append(totals.clone())
        totals += others

    function = asked.on(torch.device("cpu"), rank=rank, num_workers=num_workers, reduce=reduce)
    return function(dict(loaded.model.named_parameters())), own[0]


def test_it_is_what_the_stage_evaluate_measures(folder: Path, loaded: LoadedModel) -> None:
    valid = read_held_out(folder / "valid.parquet", "fr")
    greedy = translate(loaded, valid.sources[:NUM_SENTENCES], DecodingConfig(beam_size=1))
    resampling = Resampling(valid.groups[:NUM_SENTENCES], 100, 0)
    hypotheses = [translation.text for translation in greedy]
    expected = bleu(hypotheses, valid.references[:NUM_SENTENCES], resampling).value
    found, _ = measured(folder, loaded, 0, 1, torch.zeros(10))
    assert 1.0 < expected < 99.0
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("num_workers", [2, 9])
def test_it_does_not_depend_on_the_number_of_workers(
    folder: Path, loaded: LoadedModel, num_workers: int
) -> None:
    alone, whole = measured(folder, loaded, 0, 1, torch.zeros(10))
    shares = [measured(folder, loaded, rank, num_workers, torch.zeros(10))[1] for rank in range(num_workers)]
    assert torch.equal(sum(shares), whole)  # type: ignore[arg-type]
    together, _ = measured(folder, loaded, 0, num_workers, whole - shares[0])
    assert together == alone


def test_none_is_measured_where_none_is_asked_for(folder: Path) -> None:
    training = TrainingConfig(bleu_sentences=0)
    params = TrainParams(languages=LanguagesConfig(), model=RECURRENT, training=training)
    assert validation_bleu(params, folder / "valid.parquet", folder / "tokenizer") is None
