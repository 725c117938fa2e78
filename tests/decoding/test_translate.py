"""Translating lines: one for each, in order, whatever they hold, the same in any batch."""

from pathlib import Path

import pytest
import torch

from passerelle.config import DecodingConfig, ModelConfig
from passerelle.data.special import EOS
from passerelle.decoding import translate as module
from passerelle.decoding.search import Hypothesis
from passerelle.decoding.translate import Translation, batches, encode_sources, pad_sources, translate
from passerelle.model_folder import LoadedModel
from small_model import CONFIG as TRANSFORMER
from small_model import RECURRENT, SOURCES, small_model

CONFIG = DecodingConfig(beam_size=2, max_length_ratio=1.0, max_length=13)
ODD = ["", "   ", "\u200b", "a", "🦊🦊", "ქართული ენა", "a\tb", "We see\u2028a boat.\r", "\u202f \u00a0"]


@pytest.fixture(scope="module", params=[TRANSFORMER, RECURRENT], ids=lambda config: config.name)
def config(request: pytest.FixtureRequest) -> ModelConfig:
    return request.param


@pytest.fixture(scope="module")
def loaded(config: ModelConfig, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return small_model(tmp_path_factory.mktemp("small"), config)


def test_every_line_has_its_translation_in_order(loaded: LoadedModel) -> None:
    sentences = [text for pair in zip(ODD, SOURCES, strict=False) for text in pair]
    translations = translate(loaded, sentences, CONFIG)
    assert [translation.source for translation in translations] == sentences
    for sentence, translation in zip(sentences, translations, strict=True):
        [alone] = translate(loaded, [sentence], CONFIG)
        assert (alone.text, alone.ids) == (translation.text, translation.ids)
        assert alone.score == pytest.approx(translation.score, abs=1e-5)
        assert "\n" not in translation.text


def test_a_line_without_text_has_an_empty_translation(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded.model, "encode", None)  # calling it would fail
    for translation in translate(loaded, ["", " \t ", "\u200b", "\u202f"], CONFIG):
        assert (translation.text, translation.raw, translation.ids) == ("", "", ())
        assert translation.is_finished


@pytest.mark.parametrize("batch_tokens", [1, 40, 100_000])
def test_the_size_of_batches_changes_nothing(loaded: LoadedModel, batch_tokens: int) -> None:
    sentences = [*SOURCES[:17], "", *ODD]
    expected = translate(loaded, sentences, CONFIG)
    found = translate(loaded, sentences, CONFIG.model_copy(update={"batch_tokens": batch_tokens}))
    assert [translation.ids for translation in found] == [translation.ids for translation in expected]
    assert [t.score for t in found] == pytest.approx([t.score for t in expected], abs=1e-5)


def test_sources_are_cleaned_and_end_with_eos(loaded: LoadedModel) -> None:
    spaced, curly, empty = encode_sources(loaded, ["They  hide\u00a0ten plums !", "‘a’", " "])
    assert spaced == [*loaded.tokenizer.encode("They hide ten plums!"), EOS]
    assert curly == [*loaded.tokenizer.encode("'a'"), EOS]
    assert empty == []


def test_source_lengths_count_the_end_and_not_the_padding() -> None:
    source, lengths = pad_sources([[5, 6, EOS], [EOS], [7, EOS]], torch.device("cpu"))
    assert source.tolist() == [[5, 6, EOS], [EOS, 0, 0], [7, EOS, 0]]
    assert lengths.tolist() == [3, 1, 2]


def test_batches_hold_every_position_once_within_the_budget() -> None:
    lengths = [3, 9, 1, 4, 1, 50, 9, 2, 6, 3]
    found = list(batches(lengths, 20))
    assert sorted(position for batch in found for position in batch) == list(range(10))
    for batch in found:
        assert len(batch) == 1 or max(lengths[position] for position in batch) * len(batch) <= 20
    assert [len(batch) for batch in found] == [1, 2, 3, 4]


def test_the_longest_translation_follows_the_source_and_the_cap(loaded: LoadedModel) -> None:
    num_tokens = len(loaded.tokenizer.encode(SOURCES[0]))
    for ratio, cap in ((0.5, 200), (2.0, 200), (2.0, 7)):
        config = DecodingConfig(beam_size=1, max_length_ratio=ratio, max_length=cap)
        [translation] = translate(loaded, [SOURCES[0]], config)
        assert not translation.is_finished
        assert len(translation.ids) == min(cap, int(ratio * num_tokens) + 10)


def test_french_typography_is_put_back(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ["Vous vendez ?", "Ils cachent  un bateau!", "« Dix prunes » : non"]
    ids = [(*loaded.tokenizer.encode(answer), EOS) for answer in answers]
    found = [[Hypothesis(row, -3.0, -1.5, True)] for row in ids]
    monkeypatch.setattr(module, "search", lambda *_, **__: found)
    translations = translate(loaded, ["a"] * 3, CONFIG)
    assert [translation.text for translation in translations] == [
        "Vous vendez\u202f?",
        "Ils cachent un bateau\u202f!",
        "«\u00a0Dix prunes\u00a0»\u00a0: non",
    ]
    assert translations[1] == Translation(
        source="a", text="Ils cachent un bateau\u202f!", raw="Ils cachent un bateau !", ids=ids[1],
        log_prob=-3.0, score=-1.5, is_finished=True,
    )  # fmt: skip


def test_progress_counts_every_sentence_once(loaded: LoadedModel) -> None:
    steps: list[int] = []
    translate(loaded, ["", *SOURCES[:9], " "], CONFIG.model_copy(update={"batch_tokens": 60}), steps.append)
    assert steps[0] == 2
    assert sum(steps) == 11
    assert len(steps) > 2


def test_the_folder_is_enough(loaded: LoadedModel, config: ModelConfig, tmp_path: Path) -> None:
    again = small_model(tmp_path, config)
    assert translate(again, SOURCES[:3], CONFIG) == translate(loaded, SOURCES[:3], CONFIG)
