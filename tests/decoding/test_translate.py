"""Translating lines: one for each, in order, whatever they hold, the same in any batch."""

from pathlib import Path

import pytest
import torch

from passerelle.config import DecodingConfig, ModelConfig
from passerelle.data.special import EOS
from passerelle.decoding import translate as module
from passerelle.decoding.forced import forced_log_probs
from passerelle.decoding.hypothesis import Hypothesis
from passerelle.decoding.translate import (
    Translation,
    batches,
    encode_sources,
    pad_sources,
    translate,
    translate_n_best,
)
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
        source_ids=(*loaded.tokenizer.encode("a"), EOS), num_parts=1, is_cut=False,
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


LONG = "We see a boat. They sell ten plums! You hide an old clock? " * 4


def tokens(loaded: LoadedModel, text: str) -> tuple[int, ...]:
    return (*loaded.tokenizer.encode(text), EOS)


def test_a_long_line_is_translated_sentence_by_sentence(loaded: LoadedModel) -> None:
    config = CONFIG.model_copy(update={"max_source_tokens": len(loaded.tokenizer.encode(LONG.strip())) - 1})
    sentences = ["We see a boat.", "They sell ten plums!", "You hide an old clock?"] * 4
    [before, whole, after] = translate(loaded, [SOURCES[1], LONG, SOURCES[2]], config)
    parts = translate(loaded, sentences, config)
    assert (whole.num_parts, whole.is_cut) == (12, False)
    assert whole.ids == tuple(token for part in parts for token in part.ids)
    assert whole.source_ids == tuple(token for part in parts for token in part.source_ids)
    assert whole.raw.split() == " ".join(part.raw for part in parts).split()
    assert whole.score == pytest.approx(sum(part.score for part in parts), abs=1e-4)
    assert whole.log_prob == pytest.approx(sum(part.log_prob for part in parts), abs=1e-4)
    neighbours = translate(loaded, [SOURCES[1], SOURCES[2]], CONFIG)
    assert [before.ids, after.ids] == [translation.ids for translation in neighbours]


def test_a_short_line_is_split_into_its_sentences_where_that_is_asked_for(loaded: LoadedModel) -> None:
    line, config = "We see a boat. They hide!", CONFIG.model_copy(update={"split_sentences": True})
    [whole] = translate(loaded, [line], CONFIG)
    [split, single] = translate(loaded, [line, "They hide!"], config)
    alone = translate(loaded, ["We see a boat.", "They hide!"], CONFIG)
    assert (whole.num_parts, split.num_parts, single.num_parts) == (1, 2, 1)
    assert split.ids == alone[0].ids + alone[1].ids
    assert single == alone[1]


@pytest.mark.parametrize("long_lines", ["split", "cut"])
def test_a_sentence_of_the_most_tokens_is_left_whole(loaded: LoadedModel, long_lines: str) -> None:
    most = len(loaded.tokenizer.encode(SOURCES[0]))
    for max_source_tokens, is_whole in ((most, True), (most - 1, False)):
        changes = {"max_source_tokens": max_source_tokens, "long_lines": long_lines}
        [translation] = translate(loaded, [SOURCES[0]], CONFIG.model_copy(update=changes))
        assert (translation.num_parts == 1 and not translation.is_cut) == is_whole
        assert (translation.source_ids == tokens(loaded, SOURCES[0])) == is_whole


def test_no_part_is_longer_than_the_most_tokens_and_no_word_is_lost(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[int]] = []

    def noting(
        model: object, source: torch.Tensor, lengths: torch.Tensor, **_: object
    ) -> list[list[Hypothesis]]:
        read.extend(row[: n - 1] for row, n in zip(source.tolist(), lengths.tolist(), strict=True))
        return [[Hypothesis((EOS,), -1.0, -1.0, True)] for _ in source]

    monkeypatch.setattr(module, "search", noting)
    config = CONFIG.model_copy(update={"max_source_tokens": 9, "batch_tokens": 10_000})
    text = LONG + "We see a boat and " * 30 + "boat" * 40
    [translation] = translate(loaded, [text], config)
    assert translation.num_parts == len(read) > 20
    assert max(map(len, read)) <= 9
    ends = [index for index, token in enumerate(translation.source_ids) if token == EOS]
    starts = [0, *(end + 1 for end in ends)]
    texts = [loaded.tokenizer.decode(translation.source_ids[s:e]) for s, e in zip(starts, ends, strict=False)]
    assert "".join(texts).replace(" ", "") == text.replace(" ", "")


def test_a_long_line_is_cut_where_that_is_asked_for(loaded: LoadedModel) -> None:
    config = CONFIG.model_copy(update={"max_source_tokens": 9, "long_lines": "cut"})
    cut, whole = translate(loaded, [LONG, "We"], config)
    assert (cut.num_parts, cut.is_cut, whole.is_cut) == (1, True, False)
    assert cut.source_ids == (*loaded.tokenizer.encode(LONG)[:9], EOS)
    [forced] = forced_log_probs(loaded.model, [cut.source_ids], [cut.ids])
    assert sum(forced) == pytest.approx(cut.log_prob, abs=1e-4)


def test_n_best_of_parts_are_the_best_of_all_combinations(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [loaded.tokenizer.encode(text) for text in ("Nous voyons", "Ils vendent", "Vous cachez")]
    first = [(-1.0, True), (-1.5, True), (-4.0, True)]
    second = [(-2.0, True), (-2.2, True), (-1.0, False)]
    of_part = [
        [
            Hypothesis((*ids, EOS) if done else tuple(ids), score, score, done)
            for ids, (score, done) in zip(words, scores, strict=True)
        ]
        for scores in (first, second)
    ]
    monkeypatch.setattr(module, "search", lambda *_, **__: of_part)
    config = CONFIG.model_copy(update={"beam_size": 3, "max_source_tokens": 8})
    text = "We see a boat. They sell ten plums!"
    monkeypatch.setattr(module, "split_text", lambda *_: ["We see", "They sell"])
    monkeypatch.setattr(module, "batches", lambda lengths, _: [list(range(len(lengths)))])
    [found] = translate_n_best(loaded, [text], config, 3)
    assert [t.score for t in found] == pytest.approx([-3.0, -3.2, -3.5])
    assert found[0].raw == "Nous voyons Nous voyons"
    assert found[1].raw == "Nous voyons Ils vendent"
    assert all(t.is_finished and t.num_parts == 2 for t in found)


def test_a_sentence_without_text_has_one_translation(loaded: LoadedModel) -> None:
    for method in ("beam", "sample"):
        config = CONFIG.model_copy(update={"method": method})
        empty, filled = translate_n_best(loaded, ["", SOURCES[0]], config, 2)
        assert [(t.text, t.num_parts, t.log_prob) for t in empty] == [("", 0, 0.0)]
        assert len(filled) == 2


def test_samples_are_told_apart_by_number_and_by_seed(loaded: LoadedModel) -> None:
    config = CONFIG.model_copy(update={"method": "sample", "seed": 1})
    sentences = SOURCES[:9]
    several = translate_n_best(loaded, sentences, config, 3)
    assert [row[0].ids for row in several] == [t.ids for t in translate(loaded, sentences, config)]
    assert all(len({t.ids for t in row}) == 3 for row in several)  # they are long
    other = translate(loaded, sentences, config.model_copy(update={"seed": 2}))
    assert all(a.ids != b[0].ids for a, b in zip(other, several, strict=True))
    reversed_rows = translate_n_best(loaded, [*sentences[::-1], "We"], config, 3)[:9]
    assert [[t.ids for t in row] for row in reversed_rows] == [[t.ids for t in row] for row in several[::-1]]


def test_more_translations_than_the_beam_has_places_are_refused(loaded: LoadedModel) -> None:
    with pytest.raises(ValueError, match=r"3 translations .* but decoding.beam_size is 2: raise it"):
        translate_n_best(loaded, ["We"], CONFIG, 3)
