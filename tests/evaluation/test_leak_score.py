"""What a random split would score: the kinds of rows, and how their counts are mixed."""

from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from passerelle.config import DecodingConfig
from passerelle.decoding.translate import Translation
from passerelle.evaluation import leak_score as module
from passerelle.evaluation.leak_score import KINDS, kinds_of_rows, leak_score
from passerelle.evaluation.leaks import Texts
from passerelle.model_folder import LoadedModel, load_model
from small_model import SOURCES, TARGETS, write_small_model

HELD_OUT = [
    ("The dog barks at night.", ["Le chien aboie la nuit.", "La nuit, le chien aboie."]),
    ("She wrote a long letter.", ["Elle a écrit une longue lettre."]),
    ("He reads every evening.", ["Il lit tous les soirs."]),
]
ALONE = ("A train leaves soon.", "Un train part bientôt.")
ALSO_KNOWN = ("A tram leaves soon.", TARGETS[0])
SPLITS = {
    "train": Texts(
        [SOURCES[0], SOURCES[3], SOURCES[0].upper()], [(TARGETS[0],), (TARGETS[3],), (TARGETS[8],)]
    ),
    "test": Texts([row[0] for row in HELD_OUT], [row[1] for row in HELD_OUT]),
    "valid": Texts([ALONE[0]], [(ALONE[1],)]),
}
DECODING = DecodingConfig(beam_size=1, max_length=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def model(folder: Path) -> LoadedModel:
    return load_model(folder)


def answers(texts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Translate by the table; what it lacks becomes words of its own."""

    def translated(_: object, sentences: list[str], *__: object) -> list[Translation]:
        assert len(set(sentences)) == len(sentences)
        found = [texts.get(sentence, "rien du tout ici ce soir") for sentence in sentences]
        return [Translation(s, t, t, (3,), -1.0, -1.0, True) for s, t in zip(sentences, found, strict=True)]

    monkeypatch.setattr(module, "translate", translated)


def test_rows_are_told_apart_by_training_and_by_their_like(folder: Path) -> None:
    rows = Texts(
        [SOURCES[0], SOURCES[0].upper(), SOURCES[3], "A dog.", "A dog!", ALONE[0], ALSO_KNOWN[0]],
        [("Un.",), ("Deux.",), ("Trois.",), ("Quatre.",), ("Cinq.",), (ALONE[1],), (ALSO_KNOWN[1],)],
    )
    kinds = [KINDS[kind] if kind >= 0 else "known alone" for kind in kinds_of_rows(rows, folder)]
    assert kinds == ["leaked", "leaked", "known alone", "held_out", "held_out", "alone", "known alone"]


def test_each_kind_is_scored_by_itself(
    folder: Path, model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(
        {SOURCES[0]: TARGETS[0], SOURCES[0].upper(): TARGETS[8].replace(" ?", "\u202f?"), ALONE[0]: ALONE[1]},
        monkeypatch,
    )
    score = leak_score(model, folder, SPLITS, 0.5, DECODING)
    assert score.num_rows == {"leaked": 2, "held_out": 2, "alone": 3}
    assert score.bleu["leaked"] == pytest.approx(100.0)
    assert score.bleu["held_out"] < 10.0
    assert 10.0 < score.bleu["alone"] < 90.0


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_kinds_are_mixed_by_their_shares(
    share: float, folder: Path, model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if there were a hundred rows, so many of them leaked: repeated texts, scored by sacreBLEU itself."""
    leaked = {SOURCES[0]: TARGETS[0], SOURCES[0].upper(): TARGETS[0]}
    answers({**leaked, **{source: texts[0] for source, texts in HELD_OUT[1:2]}}, monkeypatch)
    score = leak_score(model, folder, SPLITS, share, DECODING)

    def corpus(rows: list[tuple[str, str]], count: float) -> list[tuple[str, str]]:
        return [rows[index % len(rows)] for index in range(round(600 * count))]

    nothing = "rien du tout ici ce soir"
    first = corpus([(TARGETS[0], TARGETS[0]), (TARGETS[0], TARGETS[8])], share)
    held_out = corpus([(nothing, text) for text in HELD_OUT[0][1]], share)
    alone = [(HELD_OUT[1][1][0], HELD_OUT[1][1][0]), (nothing, HELD_OUT[2][1][0]), (nothing, ALONE[1])]
    for found, rows in ((score.random_rows, first), (score.without_leak, held_out)):
        hypotheses, references = zip(*[*rows, *corpus(alone, 1.0 - share)], strict=True)
        expected = BLEU().corpus_score(hypotheses, [references])
        if expected.score > 1.0:  # below, smoothing depends on the number of rows
            assert found == pytest.approx(expected.score, abs=1e-6)


def test_a_kind_without_rows_has_no_score(folder: Path, model: LoadedModel) -> None:
    splits = {"train": SPLITS["train"], "valid": SPLITS["valid"]}
    score = leak_score(model, folder, splits, 0.5, DECODING)
    assert score.num_rows["held_out"] == 0
    assert "held_out" not in score.bleu
    assert score.without_leak is None
    assert score.random_rows is not None


def test_the_draw_is_the_same_again_and_not_larger_than_asked(
    folder: Path, model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS", 2)
    drawn = module._drawn(np.array([0, 2, 2, 0, -1, 2, 1]))
    assert [len(rows) for rows in drawn.values()] == [2, 1, 2]
    assert set(drawn["alone"].tolist()) < {1, 2, 5}
    again = module._drawn(np.array([0, 2, 2, 0, -1, 2, 1]))
    assert all(np.array_equal(drawn[kind], again[kind]) for kind in KINDS)
