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
from passerelle.decoding.search import Hypothesis, search
from passerelle.models import build_model
from table_model import WORDS, TableModel


def pad(sentences: list[list[int]], extra: int = 0) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    source = torch.full((len(sentences), int(lengths.max()) + extra), PAD)
    for row, sentence in zip(source, sentences, strict=True):
        row[: len(sentence)] = torch.tensor(sentence)
    return source, lengths


def run(
    model: object,
    sentences: list[list[int]],
    max_lengths: list[int],
    *,
    extra: int = 0,
    beam_size: int = 3,
    length_penalty: float = 1.0,
    num_best: int = 1,
) -> list[list[Hypothesis]]:
    return search(
        model,
        *pad(sentences, extra),
        beam_size=beam_size,
        length_penalty=length_penalty,  # type: ignore[arg-type]
        max_lengths=torch.tensor(max_lengths),
        num_best=num_best,
    )


def log_prob_of(model: TableModel, source: list[int], ids: tuple[int, ...]) -> float:
    """Teacher-forced, token by token, in float64."""
    prefixes = [(BOS, *ids[:t]) for t in range(len(ids))]
    steps = (model.logits(tuple(source), prefix).double().log_softmax(-1) for prefix in prefixes)
    return sum(float(step[token]) for step, token in zip(steps, ids, strict=True))


def plain_beam_search(
    model: TableModel, source: list[int], max_length: int, beam_size: int, length_penalty: float
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
                ended.append((ids[-1] == EOS, log_prob / len(ids) ** length_penalty, ids))
            else:
                live.append((log_prob, ids))
    return sorted(ended, reverse=True)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("source", [[4, EOS], [7, 5, EOS], [6, EOS]])
def test_beam_as_wide_as_the_space_finds_the_optima(length_penalty: float, source: list[int]) -> None:
    model = TableModel()
    space = [
        (*words, EOS) for length in range(4) for words in itertools.product(WORDS, repeat=length)
    ]  # 85 finished; 256 more reach length 4 without EOS
    scored = sorted(
        ((log_prob_of(model, source, ids) / len(ids) ** length_penalty, ids) for ids in space), reverse=True
    )
    [found] = run(model, [source], [4], beam_size=341, length_penalty=length_penalty, num_best=10)
    assert [h.ids for h in found] == [ids for _, ids in scored[:10]]
    assert [h.score for h in found] == pytest.approx([score for score, _ in scored[:10]], abs=1e-5)
    assert all(h.is_finished for h in found)


def test_beam_one_is_greedy_search() -> None:
    model = TableModel(bias={EOS: 1.0})
    sentences = [[word, other, EOS] for word in WORDS for other in WORDS]
    found = run(model, sentences, [9] * len(sentences), beam_size=1)
    for source, [hypothesis] in zip(sentences, found, strict=True):
        ids: tuple[int, ...] = ()
        while len(ids) < 9 and EOS not in ids:
            logits = model.logits(tuple(source), (BOS, *ids)).tolist()
            ids += (max((EOS, *WORDS), key=lambda token: logits[token]),)
        assert hypothesis.ids == ids
        assert hypothesis.is_finished == (EOS in ids)


@pytest.mark.parametrize("beam_size", [1, 2, 3, 7])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_batched_beam_equals_a_plain_one(beam_size: int, length_penalty: float) -> None:
    model = TableModel(bias={EOS: 0.5})
    sentences = [[4, EOS], [5, 6, 7, EOS], [7, EOS], [4, 4, EOS], [6, EOS]]
    max_lengths = [6, 1, 8, 3, 7]
    found = run(
        model, sentences, max_lengths, beam_size=beam_size, length_penalty=length_penalty, num_best=beam_size
    )
    for source, max_length, hypotheses in zip(sentences, max_lengths, found, strict=True):
        expected = plain_beam_search(model, source, max_length, beam_size, length_penalty)
        assert [(h.is_finished, h.ids) for h in hypotheses] == [(done, ids) for done, _, ids in expected]
        assert [h.score for h in hypotheses] == pytest.approx([score for _, score, _ in expected], abs=1e-5)


def test_reported_log_probability_is_the_forced_one() -> None:
    model = TableModel(bias={EOS: 0.5})
    [found] = run(model, [[4, 6, EOS]], [7], beam_size=4, num_best=4, length_penalty=0.7)
    for hypothesis in found:
        assert hypothesis.log_prob == pytest.approx(log_prob_of(model, [4, 6, EOS], hypothesis.ids), abs=1e-5)
        assert hypothesis.score == pytest.approx(hypothesis.log_prob / len(hypothesis.ids) ** 0.7)


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
def test_result_depends_neither_on_the_batch_nor_on_padding(name: Literal["transformer", "bahdanau"]) -> None:
    config = ModelConfig(name=name, d_model=12, num_heads=3, num_layers=1, d_ff=20)
    torch.manual_seed(3)
    model = build_model(config, 19).eval()
    draw = random.Random(5)
    sentences = [[draw.randrange(4, 19) for _ in range(draw.randrange(1, 9))] + [EOS] for _ in range(23)]
    max_lengths = [5 + len(sentence) for sentence in sentences]
    together = run(model, sentences, max_lengths, num_best=3)
    for sentence, max_length, expected in zip(sentences, max_lengths, together, strict=True):
        [alone] = run(model, [sentence], [max_length], num_best=3, extra=4)
        assert [h.ids for h in alone] == [h.ids for h in expected]
        assert [h.score for h in alone] == pytest.approx([h.score for h in expected], abs=1e-5)


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
@torch.no_grad()
def test_steps_with_a_state_give_the_forced_probabilities(name: Literal["transformer", "bahdanau"]) -> None:
    config = ModelConfig(name=name, d_model=12, num_heads=3, num_layers=2, d_ff=20)
    torch.manual_seed(4)
    model = build_model(config, 17).eval()
    source, lengths = pad([[5, 9, 16, EOS], [11, EOS]])
    found = search(
        model, source, lengths, beam_size=4, length_penalty=1.0, max_lengths=torch.tensor([9, 6]), num_best=4
    )
    for row, hypotheses in enumerate(found):
        for hypothesis in hypotheses:
            target = torch.tensor([[BOS, *hypothesis.ids]])
            memory = model.encode(source[row : row + 1, : lengths[row]], lengths[row : row + 1])
            logits, _ = model.decode(target[:, :-1], memory, model.start(memory))
            forced = logits.log_softmax(-1).gather(2, target[:, 1:, None]).sum()
            assert hypothesis.log_prob == pytest.approx(float(forced), abs=1e-5)


def test_padding_unknown_and_beginning_are_never_emitted() -> None:
    model = TableModel(bias={PAD: 9.0, UNK: 9.0, BOS: 9.0})
    for hypotheses in run(model, [[4, EOS], [5, EOS]], [6, 6], beam_size=5, num_best=5):
        assert hypotheses
        for hypothesis in hypotheses:
            assert set(hypothesis.ids) <= {EOS, *WORDS}
            assert EOS not in hypothesis.ids[:-1]


def test_a_hypothesis_cut_at_the_maximum_length_is_not_finished() -> None:
    [[cut]] = run(TableModel(bias={EOS: -50.0}), [[4, EOS]], [5])
    [[whole]] = run(TableModel(), [[4, EOS]], [5])
    assert (len(cut.ids), cut.is_finished) == (5, False)
    assert cut.score == pytest.approx(cut.log_prob / 5)
    assert whole.is_finished


def test_a_finished_hypothesis_comes_before_a_likelier_unfinished_one() -> None:
    [found] = run(TableModel(bias={EOS: -3.0}, spread=1.0), [[6, EOS]], [3], beam_size=200, num_best=200)
    is_finished = [hypothesis.is_finished for hypothesis in found]
    assert is_finished == sorted(is_finished, reverse=True)
    assert max(h.score for h in found if not h.is_finished) > found[0].score


def test_n_best_is_sorted_and_distinct_and_does_not_change_the_best() -> None:
    model = TableModel(bias={EOS: 1.0})
    sentences = [[word, other, EOS] for word in WORDS for other in WORDS]
    for length_penalty in (0.0, 1.0):
        one = run(model, sentences, [8] * 16, beam_size=6, length_penalty=length_penalty)
        six = run(model, sentences, [8] * 16, beam_size=6, length_penalty=length_penalty, num_best=6)
        assert [hypotheses[0].ids for hypotheses in one] == [hypotheses[0].ids for hypotheses in six]
        for hypotheses in six:
            scores = [(h.is_finished, h.score) for h in hypotheses]
            assert len({h.ids for h in hypotheses}) == len(hypotheses) == 6
            assert scores == sorted(scores, reverse=True)


def test_finished_hypotheses_leave_the_batch() -> None:
    model = TableModel(bias={EOS: 1.0})
    sentences = [[word, EOS] for word in WORDS]
    found = run(model, sentences, [8] * 4, beam_size=3, num_best=3)
    lengths = [len(h.ids) for hypotheses in found for h in hypotheses]
    assert model.batch_sizes[0] == 4
    for step, rows in enumerate(model.batch_sizes[1:], start=2):
        assert rows <= sum(length >= step for length in lengths)
    assert len(model.batch_sizes) == max(lengths)


def test_search_ends_when_no_live_hypothesis_can_win() -> None:
    model = TableModel(bias={EOS: 6.0}, spread=0.1)  # EOS has nearly all the probability
    [[best]] = run(model, [[4, EOS]], [50], beam_size=4, length_penalty=0.0)
    assert best.ids == (EOS,)
    assert len(model.batch_sizes) == 1


def test_a_model_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no token a probability after 0 tokens .* its weights are damaged"):
        run(TableModel(bias={4: math.nan}), [[4, EOS]], [5])
