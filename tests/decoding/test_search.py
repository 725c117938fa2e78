"""The search against exhaustive and plain-Python oracles, on models that are random tables."""

import itertools
import math
import random
from typing import Literal

import pytest
import torch
from torch import Tensor

from passerelle.config import ModelConfig
from passerelle.data.special import BOS, EOS, PAD, UNK
from passerelle.decoding.hypothesis import LengthRule
from passerelle.models import Model, build_model
from table_model import WORDS, Table, TableModel, log_prob_of, run_search

RULES: list[tuple[LengthRule, float]] = [
    ("plain", 0.0), ("plain", 0.6), ("plain", 1.0), ("plain", 2.0), ("wu", 0.0), ("wu", 0.6), ("wu", 1.0), ("wu", 2.0)
]  # fmt: skip


def score_of(log_prob: float, length: int, rule: LengthRule, penalty: float) -> float:
    """As the papers write it."""
    return log_prob / (length**penalty if rule == "plain" else (5 + length) ** penalty / (5 + 1) ** penalty)


def plain_beam_search(
    model: TableModel, source: list[int], max_length: int, beam_size: int, rule: LengthRule, penalty: float
) -> list[tuple[bool, float, tuple[int, ...]]]:
    """The places rule of the module, one sentence, in plain Python."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    ended = []
    while live:
        continuations = []
        for log_prob, ids in live:
            steps = model.logits(tuple(source), (BOS, *ids)).double().log_softmax(-1).tolist()
            continuations += [(log_prob + steps[token], (*ids, token)) for token in (EOS, *WORDS)]
        continuations.sort(reverse=True)
        live = []
        for log_prob, ids in continuations[: beam_size - len(ended)]:
            if ids[-1] == EOS or len(ids) == max_length:
                ended.append((ids[-1] == EOS, score_of(log_prob, len(ids), rule, penalty), ids))
            else:
                live.append((log_prob, ids))
    return sorted(ended, reverse=True)


@pytest.mark.parametrize(("rule", "penalty"), RULES)
@pytest.mark.parametrize("source", [[4, EOS], [7, 5, EOS], [6, EOS]])
def test_beam_as_wide_as_the_space_finds_the_optima(
    rule: LengthRule, penalty: float, source: list[int]
) -> None:
    model = TableModel()
    space = [
        (*words, EOS) for length in range(4) for words in itertools.product(WORDS, repeat=length)
    ]  # 85 finished; 256 more reach length 4 without EOS
    scored = sorted(
        ((score_of(log_prob_of(model, source, ids), len(ids), rule, penalty), ids) for ids in space),
        reverse=True,
    )
    settings = {"beam_size": 341, "length_rule": rule, "length_penalty": penalty}
    [found] = run_search(model, [source], [4], num_best=10, **settings)
    assert [h.ids for h in found] == [ids for _, ids in scored[:10]]
    assert [h.score for h in found] == pytest.approx([score for score, _ in scored[:10]], abs=1e-5)
    assert all(h.is_finished for h in found)
    [[best]] = run_search(model, [source], [4], **settings)  # may stop earlier
    assert best.ids == scored[0][1]


def test_beam_one_is_greedy_search() -> None:
    model = TableModel(bias={EOS: 1.0})
    sentences = [[word, other, EOS] for word in WORDS for other in WORDS]
    found = run_search(model, sentences, [9] * len(sentences), beam_size=1)
    for source, [hypothesis] in zip(sentences, found, strict=True):
        ids: tuple[int, ...] = ()
        while len(ids) < 9 and EOS not in ids:
            logits = model.logits(tuple(source), (BOS, *ids)).tolist()
            ids += (max((EOS, *WORDS), key=lambda token: logits[token]),)
        assert hypothesis.ids == ids
        assert hypothesis.is_finished == (EOS in ids)


@pytest.mark.parametrize("beam_size", [1, 2, 3, 7])
@pytest.mark.parametrize(("rule", "penalty"), [("plain", 0.0), ("plain", 1.0), ("wu", 0.9)])
def test_batched_beam_equals_a_plain_one(beam_size: int, rule: LengthRule, penalty: float) -> None:
    model = TableModel(bias={EOS: 0.5})
    sentences = [[4, EOS], [5, 6, 7, EOS], [7, EOS], [4, 4, EOS], [6, EOS]]
    max_lengths = [6, 1, 8, 3, 7]
    settings = {"beam_size": beam_size, "length_rule": rule, "length_penalty": penalty}
    found = run_search(model, sentences, max_lengths, num_best=beam_size, **settings)
    single = run_search(model, sentences, max_lengths, **settings)
    for index, (source, max_length) in enumerate(zip(sentences, max_lengths, strict=True)):
        expected = plain_beam_search(model, source, max_length, beam_size, rule, penalty)
        assert [(h.is_finished, h.ids) for h in found[index]] == [(done, ids) for done, _, ids in expected]
        assert [h.score for h in found[index]] == pytest.approx([score for _, score, _ in expected], abs=1e-5)
        assert [h.ids for h in single[index]] == [expected[0][2]]


def test_reported_log_probability_is_the_forced_one() -> None:
    model = TableModel(bias={EOS: 0.5})
    [found] = run_search(model, [[4, 6, EOS]], [7], beam_size=4, num_best=4, length_penalty=0.7)
    for hypothesis in found:
        assert hypothesis.log_prob == pytest.approx(log_prob_of(model, [4, 6, EOS], hypothesis.ids), abs=1e-5)
        assert hypothesis.score == pytest.approx(hypothesis.log_prob / len(hypothesis.ids) ** 0.7)


def random_model(name: Literal["transformer", "bahdanau"], vocab_size: int = 19) -> Model:
    torch.manual_seed(3)
    config = ModelConfig(name=name, d_model=12, num_heads=3, num_layers=2, d_ff=20)
    return build_model(config, vocab_size).eval()


def random_sentences(num: int) -> list[list[int]]:
    draw = random.Random(5)
    return [[draw.randrange(4, 19) for _ in range(draw.randrange(1, 9))] + [EOS] for _ in range(num)]


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
def test_result_depends_neither_on_the_batch_nor_on_padding(name: Literal["transformer", "bahdanau"]) -> None:
    model, sentences = random_model(name), random_sentences(23)
    max_lengths = [5 + len(sentence) for sentence in sentences]
    together = run_search(model, sentences, max_lengths, num_best=3)
    for sentence, max_length, expected in zip(sentences, max_lengths, together, strict=True):
        [alone] = run_search(model, [sentence], [max_length], num_best=3, extra=4)
        assert [h.ids for h in alone] == [h.ids for h in expected]
        assert [h.score for h in alone] == pytest.approx([h.score for h in expected], abs=1e-5)


class Uncached:
    """A model whose state is the tokens so far, all of which it computes anew at each step."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def encode(self, source: Tensor, source_lengths: Tensor) -> object:
        return self.model.encode(source, source_lengths)

    def start(self, memory: object) -> Table:
        return Table(((),) * 23)

    def decode(self, target_in: Tensor, memory: object, state: Table) -> tuple[Tensor, Table]:
        rows = [(*row, *new) for row, new in zip(state.rows, target_in.tolist(), strict=True)]
        logits, _ = self.model.decode(torch.tensor(rows), memory, self.model.start(memory))
        return logits[:, -target_in.size(1) :], Table(tuple(rows))


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
def test_cached_decoding_finds_what_uncached_does(name: Literal["transformer", "bahdanau"]) -> None:
    model, sentences = random_model(name), random_sentences(23)
    max_lengths = [5 + len(sentence) for sentence in sentences]
    for beam_size in (1, 4):
        settings = {"beam_size": beam_size, "num_best": beam_size}
        found = run_search(model, sentences, max_lengths, **settings)
        expected = run_search(Uncached(model), sentences, max_lengths, **settings)
        for hypotheses, of_uncached in zip(found, expected, strict=True):
            assert [h.ids for h in hypotheses] == [h.ids for h in of_uncached]
            assert [h.score for h in hypotheses] == pytest.approx([h.score for h in of_uncached], abs=1e-5)


@torch.no_grad()
def test_a_large_vocabulary_is_searched_like_a_small_one() -> None:
    model, sentences = random_model("transformer", vocab_size=1500), random_sentences(5)
    for source, hypotheses in zip(sentences, run_search(model, sentences, [4] * 5, beam_size=3), strict=True):
        memory = model.encode(torch.tensor([source]), torch.tensor([len(source)]))
        live = [(0.0, (BOS,))]
        for _ in range(4):  # so large a vocabulary hardly ever chooses EOS at random
            logits = [
                model.decode(torch.tensor([ids]), memory, model.start(memory))[0][0, -1] for _, ids in live
            ]
            continued = [
                (log_prob + float(step[token]), (*ids, token))
                for (log_prob, ids), step in zip(live, (row.log_softmax(-1) for row in logits), strict=True)
                for token in range(EOS, 1500)
            ]
            live = sorted(continued, reverse=True)[:3]
        assert hypotheses[0].ids == live[0][1][1:]
        assert hypotheses[0].log_prob == pytest.approx(live[0][0], abs=1e-4)


def test_padding_unknown_and_beginning_are_never_emitted() -> None:
    model = TableModel(bias={PAD: 9.0, UNK: 9.0, BOS: 9.0})
    for hypotheses in run_search(model, [[4, EOS], [5, EOS]], [6, 6], beam_size=5, num_best=5):
        assert hypotheses
        for hypothesis in hypotheses:
            assert set(hypothesis.ids) <= {EOS, *WORDS}
            assert EOS not in hypothesis.ids[:-1]


def test_a_hypothesis_cut_at_the_maximum_length_is_not_finished() -> None:
    [[cut]] = run_search(TableModel(bias={EOS: -50.0}), [[4, EOS]], [5])
    [[whole]] = run_search(TableModel(), [[4, EOS]], [5])
    assert (len(cut.ids), cut.is_finished) == (5, False)
    assert cut.score == pytest.approx(cut.log_prob / 5)
    assert whole.is_finished


def test_a_finished_hypothesis_comes_before_a_likelier_unfinished_one() -> None:
    model = TableModel(bias={EOS: -3.0}, spread=1.0)
    [found] = run_search(model, [[6, EOS]], [3], beam_size=200, num_best=200)
    is_finished = [hypothesis.is_finished for hypothesis in found]
    assert is_finished == sorted(is_finished, reverse=True)
    assert max(h.score for h in found if not h.is_finished) > found[0].score


@pytest.mark.parametrize(("rule", "penalty"), RULES)
def test_n_best_is_sorted_and_distinct_and_does_not_change_the_best(rule: LengthRule, penalty: float) -> None:
    model = TableModel(bias={EOS: 1.0})
    sentences = [[word, other, EOS] for word in WORDS for other in WORDS]
    settings = {"beam_size": 6, "length_rule": rule, "length_penalty": penalty}
    one = run_search(model, sentences, [8] * 16, **settings)
    six = run_search(model, sentences, [8] * 16, num_best=6, **settings)
    assert [hypotheses[0].ids for hypotheses in one] == [hypotheses[0].ids for hypotheses in six]
    for hypotheses in six:
        scores = [(h.is_finished, h.score) for h in hypotheses]
        assert len({h.ids for h in hypotheses}) == len(hypotheses) == 6
        assert scores == sorted(scores, reverse=True)


def test_finished_hypotheses_leave_the_batch() -> None:
    model = TableModel(bias={EOS: 1.0})
    sentences = [[word, EOS] for word in WORDS]
    found = run_search(model, sentences, [8] * 4, beam_size=3, num_best=3)
    lengths = [len(h.ids) for hypotheses in found for h in hypotheses]
    assert model.batch_sizes[0] == 4
    for step, rows in enumerate(model.batch_sizes[1:], start=2):
        assert rows <= sum(length >= step for length in lengths)
    assert len(model.batch_sizes) == max(lengths)


@pytest.mark.parametrize("rule", ["plain", "wu"])
def test_search_ends_when_no_live_hypothesis_can_win(rule: LengthRule) -> None:
    model = TableModel(bias={EOS: 6.0}, spread=0.1)  # EOS has nearly all the probability
    [[best]] = run_search(model, [[4, EOS]], [50], beam_size=4, length_penalty=0.0, length_rule=rule)
    assert best.ids == (EOS,)
    assert len(model.batch_sizes) == 1


def test_a_model_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no token a probability .* its weights are damaged"):
        run_search(TableModel(bias={4: math.nan}), [[4, EOS]], [5])
