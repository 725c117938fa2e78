"""On a trained model and hundreds of sentences: what else is translated, and how, changes no translation."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from passerelle.config import DecodingConfig
from passerelle.decoding.forced import forced_log_probs
from passerelle.decoding.search import search
from passerelle.decoding.translate import (
    Translation,
    encode_sources,
    pad_sources,
    translate,
    translate_n_best,
)
from phrasebook_model import Phrasebook

CONFIGS = {
    "greedy": DecodingConfig(beam_size=1),
    "beam": DecodingConfig(beam_size=5),
    "wu": DecodingConfig(beam_size=4, length_rule="wu", length_penalty=0.8),
    "sample": DecodingConfig(method="sample", temperature=0.7, top_k=20, top_p=0.9, seed=3),
}


@pytest.fixture(scope="module")
def phrasebook(phrasebook: Phrasebook) -> Phrasebook:
    """With fewer sentences: each is translated dozens of times here."""
    return replace(phrasebook, sources=phrasebook.sources[:200], targets=phrasebook.targets[:200])


@pytest.fixture(scope="module", params=CONFIGS)
def config(request: pytest.FixtureRequest) -> DecodingConfig:
    return CONFIGS[request.param]


@pytest.fixture(scope="module")
def together(phrasebook: Phrasebook, config: DecodingConfig) -> list[Translation]:
    return translate(phrasebook.loaded, phrasebook.sources, config)


def assert_same(found: Sequence[Translation], expected: Sequence[Translation]) -> None:
    assert [translation.ids for translation in found] == [translation.ids for translation in expected]
    assert [translation.text for translation in found] == [translation.text for translation in expected]
    assert [t.score for t in found] == pytest.approx([t.score for t in expected], abs=1e-4)
    assert [t.log_prob for t in found] == pytest.approx([t.log_prob for t in expected], abs=1e-4)


def test_the_model_ends_its_sentences_and_many_are_right(phrasebook: Phrasebook) -> None:
    found = translate(phrasebook.loaded, phrasebook.sources, CONFIGS["beam"])
    assert sum(translation.is_finished for translation in found) > 0.97 * len(found)
    right = sum(t.raw == target for t, target in zip(found, phrasebook.targets, strict=True))
    assert right > 0.3 * len(found)  # the tests here are about something


def test_a_sentence_alone_has_the_translation_that_it_has_among_others(
    phrasebook: Phrasebook, config: DecodingConfig, together: list[Translation]
) -> None:
    alone = [translate(phrasebook.loaded, [source], config)[0] for source in phrasebook.sources[::4]]
    assert_same(alone, together[::4])


@pytest.mark.parametrize("batch_tokens", [150, 700, 1_000_000])
def test_neither_order_nor_the_size_of_batches_matters(
    phrasebook: Phrasebook, config: DecodingConfig, together: list[Translation], batch_tokens: int
) -> None:
    order = random.Random(batch_tokens).sample(range(len(together)), len(together))
    changed = config.model_copy(update={"batch_tokens": batch_tokens})
    found = translate(phrasebook.loaded, [phrasebook.sources[index] for index in order], changed)
    assert_same(found, [together[index] for index in order])


@pytest.mark.parametrize("num_columns", [1, 9, 64])
def test_padding_does_not_matter(phrasebook: Phrasebook, num_columns: int) -> None:
    sources = encode_sources(phrasebook.loaded, phrasebook.sources)
    source, lengths = pad_sources(sources, torch.device("cpu"))
    settings = {"beam_size": 4, "length_penalty": 1.0, "max_lengths": 2 * lengths + 10}
    expected = search(phrasebook.loaded.model, source, lengths, **settings)
    wider = torch.nn.functional.pad(source, (0, num_columns), value=5)
    found = search(phrasebook.loaded.model, wider, lengths, **settings)
    assert [best.ids for [best] in found] == [best.ids for [best] in expected]
    assert [best.score for [best] in found] == pytest.approx([best.score for [best] in expected], abs=1e-4)


def test_the_reported_log_probability_is_the_forced_one(
    phrasebook: Phrasebook, together: list[Translation]
) -> None:
    forced = forced_log_probs(
        phrasebook.loaded.model, [t.source_ids for t in together], [t.ids for t in together]
    )
    assert [sum(row) for row in forced] == pytest.approx([t.log_prob for t in together], abs=1e-4)
    assert [len(row) for row in forced] == [len(t.ids) for t in together]


@pytest.mark.parametrize("rule", ["plain", "wu"])
def test_n_best_is_sorted_and_distinct_and_begins_with_the_best(phrasebook: Phrasebook, rule: str) -> None:
    config = DecodingConfig(beam_size=6).model_copy(update={"length_rule": rule})
    one = translate(phrasebook.loaded, phrasebook.sources, config)
    six = translate_n_best(phrasebook.loaded, phrasebook.sources, config, 6)
    assert_same([translations[0] for translations in six], one)
    for translations in six:
        assert len({t.ids for t in translations}) == len(translations) == 6
        ranks = [(t.is_finished, t.score) for t in translations]
        assert ranks == sorted(ranks, reverse=True)
