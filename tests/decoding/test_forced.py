"""Forced decoding: the probability of given translations, whatever stands beside them."""

import math
import random
from typing import Literal

import pytest
import torch

from passerelle.config import DecodingConfig, ModelConfig
from passerelle.data.special import BOS, EOS
from passerelle.decoding import forced as module
from passerelle.decoding.forced import forced_log_probs, score
from passerelle.decoding.translate import translate
from passerelle.model_folder import LoadedModel
from passerelle.models import build_model
from phrasebook_model import Phrasebook
from small_model import SOURCES, TARGETS, small_model
from table_model import TableModel, log_prob_of


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return small_model(tmp_path_factory.mktemp("small"))


def test_each_token_has_its_probability_after_those_before_it() -> None:
    model, sources = TableModel(), [[4, EOS], [7, 5, 6, EOS], [6, EOS]]
    targets = [(5, 6, EOS), (EOS,), (4, 4, 7)]  # the last is unfinished
    found = forced_log_probs(model, sources, targets)
    for source, target, log_probs in zip(sources, targets, found, strict=True):
        assert len(log_probs) == len(target)
        for length in range(1, len(target) + 1):
            expected = log_prob_of(model, source, target[:length])
            assert sum(log_probs[:length]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
@torch.no_grad()
def test_batches_change_nothing(
    name: Literal["transformer", "bahdanau"], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(3)
    model = build_model(ModelConfig(name=name, d_model=12, num_heads=3, num_layers=2, d_ff=20), 19).eval()
    draw = random.Random(5)
    sources, targets = (
        [[draw.randrange(4, 19) for _ in range(draw.randrange(1, 9))] + [EOS] for _ in range(23)]
        for _ in "ab"
    )
    found = forced_log_probs(model, sources, targets)
    monkeypatch.setattr(module, "MOST_TOKENS", 30)
    cut = forced_log_probs(model, sources, targets)
    for source, target, log_probs, again in zip(sources, targets, found, cut, strict=True):
        memory = model.encode(torch.tensor([source]), torch.tensor([len(source)]))
        logits, _ = model.decode(torch.tensor([[BOS, *target[:-1]]]), memory, model.start(memory))
        expected = logits[0].log_softmax(-1)[range(len(target)), target].tolist()
        assert log_probs == pytest.approx(expected, abs=1e-5)
        assert again == pytest.approx(expected, abs=1e-5)


def test_a_target_without_tokens_has_none() -> None:
    model = TableModel()
    assert forced_log_probs(model, [[4, EOS]] * 3, [(), (5, EOS), ()])[::2] == [(), ()]
    assert forced_log_probs(model, [], []) == []
    assert model.batch_sizes == [1]


def test_a_text_is_cleaned_on_both_sides(loaded: LoadedModel) -> None:
    found = score(
        loaded, ["  We see\u00a0a boat !", SOURCES[3]], [" Nous  voyons un bateau\u202f!", TARGETS[1]]
    )
    expected = score(loaded, ["We see a boat!", SOURCES[3]], ["Nous voyons un bateau !", TARGETS[1]])
    assert found == expected
    assert [len(row) for row in found] == [
        len(loaded.tokenizer.encode(t)) + 1 for t in (TARGETS[1], TARGETS[1])
    ]


def test_nothing_is_certain_where_the_source_has_no_text(loaded: LoadedModel) -> None:
    both, text_alone, end_alone = score(loaded, [" ", "\u200b", SOURCES[0]], ["", TARGETS[0], "\t"])
    assert both == ()
    assert set(text_alone) == {-math.inf}
    assert len(text_alone) == len(loaded.tokenizer.encode(TARGETS[0])) + 1
    assert len(end_alone) == 1
    assert -math.inf < end_alone[0] < 0.0


def test_right_translations_are_likelier_than_those_of_others(phrasebook: Phrasebook) -> None:
    right = score(phrasebook.loaded, phrasebook.sources, phrasebook.targets)
    wrong = score(phrasebook.loaded, phrasebook.sources, [*phrasebook.targets[1:], phrasebook.targets[0]])
    is_right = [sum(a) > sum(b) for a, b in zip(right, wrong, strict=True)]
    assert sum(is_right) > 0.95 * len(is_right)


def test_no_translation_is_likelier_than_the_widest_beams(phrasebook: Phrasebook) -> None:
    config = DecodingConfig(beam_size=20, length_penalty=0.0)
    found = translate(phrasebook.loaded, phrasebook.sources[:60], config)
    given = score(phrasebook.loaded, phrasebook.sources[:60], phrasebook.targets[:60])
    likelier = [sum(log_probs) > best.log_prob + 1e-4 for best, log_probs in zip(found, given, strict=True)]
    assert sum(likelier) <= 2  # a beam may miss the likeliest, seldom


def test_a_model_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="gives NaN for a probability; its weights are damaged"):
        forced_log_probs(TableModel(bias={4: math.nan}), [[4, EOS]], [(5, EOS)])
