"""Sampling: greedy search where it leaves no choice, the model's probabilities where it leaves all."""

import math
from collections import Counter
from typing import Any

import pytest
import torch

from passerelle.data.special import BOS, EOS
from passerelle.decoding.hypothesis import Hypothesis
from passerelle.decoding.sampling import sample, uniform_draws
from passerelle.decoding.search import search
from table_model import WORDS, TableModel, log_prob_of, pad

SENTENCES = [[word, other, EOS] for word in WORDS for other in WORDS] + [[word, EOS] for word in WORDS]
MAX_LENGTHS = [9] * len(SENTENCES)


def run(
    model: object, sentences: list[list[int]], max_lengths: list[int], **settings: Any
) -> list[Hypothesis]:
    seed, number = settings.pop("seed", 0), settings.pop("number", 0)
    defaults = {"temperature": 1.0, "top_k": None, "top_p": None, "length_penalty": 1.0}
    return sample(
        model,
        *pad(sentences),
        draws=uniform_draws(sentences, max(max_lengths), seed=seed, number=number),
        max_lengths=torch.tensor(max_lengths),
        **(defaults | settings),
    )


@pytest.mark.parametrize("choice", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}])
def test_sampling_without_a_choice_is_greedy_search(choice: dict[str, Any]) -> None:
    model = TableModel(bias={EOS: 1.0})
    greedy = search(
        model, *pad(SENTENCES), beam_size=1, length_penalty=1.0, max_lengths=torch.tensor(MAX_LENGTHS)
    )
    found = run(model, SENTENCES, MAX_LENGTHS, **choice)
    assert [hypothesis.ids for hypothesis in found] == [best.ids for [best] in greedy]
    assert [h.is_finished for h in found] == [best.is_finished for [best] in greedy]
    assert [h.score for h in found] == pytest.approx([best.score for [best] in greedy], abs=1e-5)


def test_translations_come_as_often_as_the_model_says() -> None:
    model, source, num = TableModel(bias={EOS: 1.0}), [4, EOS], 6000
    numbers = torch.cat([uniform_draws([source], 2, seed=7, number=number) for number in range(num)])
    rows, lengths = pad([source] * num)
    found = sample(
        model, rows, lengths, draws=numbers, temperature=1.0, top_k=None, top_p=None, length_penalty=0.0,
        max_lengths=torch.full((num,), 2),
    )  # fmt: skip
    counted = Counter(hypothesis.ids for hypothesis in found)
    possible = [(EOS,)] + [(word, last) for word in WORDS for last in (EOS, *WORDS)]
    allowed = model.logits(tuple(source), (BOS,)).double()[EOS:].softmax(0)
    for ids in possible:
        expected = float(allowed[ids[0] - EOS])
        if len(ids) == 2:
            expected *= float(
                model.logits(tuple(source), (BOS, ids[0])).double()[EOS:].softmax(0)[ids[1] - EOS]
            )
        deviation = math.sqrt(expected * (1 - expected) / num)
        assert counted[ids] / num == pytest.approx(expected, abs=4 * deviation + 1e-9), ids
    assert set(counted) <= set(possible)


def test_a_draw_depends_on_the_seed_and_the_sentence_alone() -> None:
    model = TableModel(bias={EOS: 1.0}, spread=0.5)
    together = run(model, SENTENCES, MAX_LENGTHS, seed=4)
    for index in reversed(range(len(SENTENCES))):
        assert run(model, [SENTENCES[index]], [9], seed=4)[0].ids == together[index].ids
    assert [h.ids for h in run(model, SENTENCES * 2, MAX_LENGTHS * 2, seed=4)] == [
        h.ids for h in together
    ] * 2
    assert [h.ids for h in run(model, SENTENCES, MAX_LENGTHS, seed=5)] != [h.ids for h in together]
    assert [h.ids for h in run(model, SENTENCES, MAX_LENGTHS, seed=4, number=1)] != [h.ids for h in together]


def test_a_longer_limit_begins_with_the_same_draws() -> None:
    short = uniform_draws(SENTENCES, 5, seed=1, number=0)
    long = uniform_draws(SENTENCES, 50, seed=1, number=0)
    assert torch.equal(long[:, :5], short)
    assert 0.0 <= float(long.min()) < 0.05
    assert 0.95 < float(long.max()) < 1.0
    assert len(set(map(tuple, long.tolist()))) == len(SENTENCES)


def test_the_log_probability_is_the_models_at_any_temperature() -> None:
    model = TableModel(bias={EOS: 1.0})
    for hypothesis, source in zip(
        run(model, SENTENCES, MAX_LENGTHS, temperature=2.0, length_penalty=0.5), SENTENCES, strict=True
    ):
        assert hypothesis.log_prob == pytest.approx(log_prob_of(model, source, hypothesis.ids), abs=1e-5)
        assert hypothesis.score == pytest.approx(hypothesis.log_prob / len(hypothesis.ids) ** 0.5)


def test_a_sample_ends_at_its_maximum_length_and_leaves_the_batch() -> None:
    model = TableModel(bias={EOS: -50.0})
    found = run(model, SENTENCES[:4], [3, 7, 1, 7])
    assert [len(hypothesis.ids) for hypothesis in found] == [3, 7, 1, 7]
    assert not any(hypothesis.is_finished for hypothesis in found)
    assert model.batch_sizes == [4, 3, 3, 2, 2, 2, 2]
