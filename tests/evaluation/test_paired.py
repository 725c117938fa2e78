"""The paired bootstrap against sacreBLEU's own, and what its p must be worth."""

import random
from itertools import zip_longest

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from passerelle.evaluation.corpus_statistics import score_of, statistics
from passerelle.evaluation.paired import paired_score, two_sided_p
from passerelle.evaluation.scores import METRICS, Resampling, bleu, resampled_scores

WORDS = ["le", "la", "un", "une", "chat", "chien", "voit", "mange", "rouge", "ici", "ne", "pas", "donc"]
NUM_SENTENCES = 60


def spoilt(words: list[str], share: float, draw: random.Random) -> str:
    """The sentence with that share of its words replaced."""
    return " ".join(draw.choice(WORDS) if draw.random() < share else word for word in words)


def made_up(
    num_sentences: int, seed: int, shares: tuple[float, float]
) -> tuple[list[str], list[str], list[list[str]]]:
    """Two sets of hypotheses with that share of wrong words, and one to three references of each sentence."""
    draw = random.Random(seed)
    first, second, references = [], [], []
    for _ in range(num_sentences):
        words = draw.choices(WORDS, k=draw.randint(3, 9))
        first.append(spoilt(words, shares[0], draw))
        second.append(spoilt(words, shares[1], draw))
        references.append([spoilt(words, 0.1, draw) for _ in range(draw.randint(1, 3))])
    return first, second, references


FIRST, SECOND, REFERENCES = made_up(NUM_SENTENCES, seed=4, shares=(0.4, 0.35))
EACH = [f"{index:04}" for index in range(NUM_SENTENCES)]
"""A group for each sentence, in their order."""


@pytest.mark.parametrize(
    ("name", "metric"), [("BLEU", BLEU()), ("chrF++", CHRF(word_order=2)), ("TER", TER())]
)
def test_resamplings_are_those_of_sacrebleu_where_groups_are_sentences(
    name: str, metric: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "321")
    sets = [list(texts) for texts in zip_longest(*REFERENCES)]
    systems = [("first", FIRST), ("second", SECOND)]
    _, answer = PairedTest(systems, {name: metric}, sets, test_type="bs", n_samples=400)()
    [expected] = [results for key, results in answer.items() if key != "System"]
    resampling = Resampling(EACH, 400, seed=321)
    measure = METRICS[name]()
    drawn = [
        resampled_scores(measure, statistics(measure, texts, REFERENCES), resampling)
        for texts in (FIRST, SECOND)
    ]
    found = paired_score(name, FIRST, SECOND, REFERENCES, resampling)
    assert found.first == pytest.approx(expected[0].score)
    assert found.second == pytest.approx(expected[1].score)
    assert drawn[1].mean() == pytest.approx(expected[1].mean, abs=1e-4)
    unsigned = np.abs(drawn[1] - drawn[0])  # sacreBLEU's p, of our resamplings
    p = (np.sum(unsigned - unsigned.mean() > abs(found.difference)) + 1) / 401
    assert p == pytest.approx(expected[1].p_value, abs=1e-9)


def test_p_is_the_tail_on_both_sides() -> None:
    differences = np.random.default_rng(0).normal(2.0, 1.0, size=40_000)
    assert two_sided_p(differences, 2.0) == pytest.approx(
        0.0455, abs=0.004
    )  # of a normal, beyond two deviations
    assert two_sided_p(-differences, -2.0) == two_sided_p(differences, 2.0)


def test_equal_systems_differ_by_chance_one_time_in_twenty() -> None:
    first, second, references = made_up(1500, seed=9, shares=(0.3, 0.3))
    metric = BLEU()
    counts = np.stack([statistics(metric, texts, references) for texts in (first, second)])  # (2, N, K)
    random_numbers = np.random.default_rng(1)
    chances = []
    for seed in range(200):
        rows = random_numbers.choice(1500, size=100, replace=False)
        side = random_numbers.integers(2, size=100)
        pair = counts[side, rows], counts[1 - side, rows]
        resampling = Resampling([f"{index:03}" for index in range(100)], 100, seed)
        one, other = (resampled_scores(metric, each, resampling) for each in pair)
        found = score_of(metric, pair[1].sum(0)) - score_of(metric, pair[0].sum(0))
        chances.append(two_sided_p(other - one, found))
    assert 0.01 <= np.mean(np.array(chances) <= 0.05) <= 0.09
    assert 0.4 <= np.mean(chances) <= 0.6


def test_a_clear_difference_is_significant_and_inside_its_interval() -> None:
    first, second, references = made_up(NUM_SENTENCES, seed=5, shares=(0.5, 0.1))
    for name in ("BLEU", "chrF++", "TER"):
        score = paired_score(name, first, second, references, Resampling(EACH, 200, seed=1))
        assert score.p == pytest.approx(1 / 201)
        assert score.low < score.difference < score.high
        assert (score.difference < 0) == (name == "TER")
        assert score.low * score.high > 0


def test_translations_compared_with_themselves_do_not_differ() -> None:
    score = paired_score("BLEU", FIRST, FIRST, REFERENCES, Resampling(EACH, 100, seed=1))
    assert (score.difference, score.low, score.high, score.p) == (0.0, 0.0, 0.0, 1.0)


def test_the_other_order_gives_the_same_p_and_the_opposite_difference() -> None:
    resampling = Resampling(EACH, 200, seed=1)
    score = paired_score("BLEU", FIRST, SECOND, REFERENCES, resampling)
    reverse = paired_score("BLEU", SECOND, FIRST, REFERENCES, resampling)
    assert reverse.p == score.p
    assert reverse.difference == -score.difference
    assert (reverse.low, reverse.high) == pytest.approx((-score.high, -score.low))
    assert score.signature == bleu(FIRST, REFERENCES, resampling).signature


def test_sentences_of_one_group_are_no_evidence_of_their_own() -> None:
    first, second, references = FIRST * 5, SECOND * 5, REFERENCES * 5
    once = paired_score("BLEU", FIRST, SECOND, REFERENCES, Resampling(EACH, 400, seed=1))
    grouped = paired_score("BLEU", first, second, references, Resampling(EACH * 5, 400, seed=1))
    alone = [f"{index:04}" for index in range(len(first))]
    ungrouped = paired_score("BLEU", first, second, references, Resampling(alone, 400, seed=1))
    assert grouped.difference == pytest.approx(once.difference)
    assert grouped.p == pytest.approx(once.p, abs=0.02)
    assert ungrouped.p < 0.5 * grouped.p
