"""BLEU, chrF, chrF++ and TER of sacreBLEU, against any number of references a sentence, each with an interval.

Hypotheses and references are detokenised text. A sentence's references are a list of its own, and sentences
may have different numbers of them: sacreBLEU then writes `nrefs:var` into the signature.

The interval is the bootstrap's (Koehn 2004): groups of sentences are drawn with replacement, as many as there
are, and scored, often. Groups, since sentences that share a source or a reference are not independent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF, TER

from passerelle.evaluation.corpus_statistics import References, check_texts, score_of, statistics

METRICS: dict[str, Callable[[], Any]] = {
    "BLEU": BLEU,
    "chrF": CHRF,
    "chrF++": partial(CHRF, word_order=2),
    "TER": TER,
}
"""Name -> makes sacreBLEU's metric."""


@dataclass(frozen=True)
class Resampling:
    """How a confidence interval is made."""

    groups: Sequence[str]
    """The group of each sentence."""
    num_samples: int
    seed: int

    def describe(self) -> str:
        """In the manner of a sacreBLEU signature."""
        num_groups = len(set(self.groups))
        return f"interval:95%|bootstrap:{self.num_samples}|over:{num_groups} groups|seed:{self.seed}"


@dataclass(frozen=True)
class Score:
    """A corpus score, 0 to 100; TER alone is better when it is lower, and can exceed 100."""

    value: float
    low: float
    """95 % of the resamplings score between low and high."""
    high: float
    signature: str
    """sacreBLEU's, of the score itself."""


def bleu(hypotheses: Sequence[str], references: References, resampling: Resampling) -> Score:
    """Corpus BLEU (13a tokenisation, cased). Raises ValueError where the texts do not belong together."""
    return _score("BLEU", hypotheses, references, resampling)


def chrf(hypotheses: Sequence[str], references: References, resampling: Resampling) -> Score:
    """Corpus chrF (chrF2); of several references the best counts. Raises ValueError like `bleu`."""
    return _score("chrF", hypotheses, references, resampling)


def chrf_pp(hypotheses: Sequence[str], references: References, resampling: Resampling) -> Score:
    """Corpus chrF++ (chrF2++): chrF with words and pairs of words. Raises ValueError like `bleu`."""
    return _score("chrF++", hypotheses, references, resampling)


def ter(hypotheses: Sequence[str], references: References, resampling: Resampling) -> Score:
    """Corpus TER: edits to each sentence's nearest reference, for 100 words of its references' mean length.

    Lower is better. Words stand between spaces, without case. Raises ValueError like `bleu`.
    """
    return _score("TER", hypotheses, references, resampling)


def sentence_chrf(hypotheses: Sequence[str], references: References) -> list[float]:
    """chrF of each sentence; unlike BLEU it means something for short ones. Raises ValueError like `bleu`."""
    check_texts(hypotheses, references)
    metric = CHRF()
    pairs = zip(hypotheses, references, strict=True)
    return [float(metric.sentence_score(hypothesis, list(texts)).score) for hypothesis, texts in pairs]


def first_references(references: References) -> list[list[str]]:
    """The first reference of each sentence alone."""
    return [list(texts[:1]) for texts in references]


def score_of_counts(metric: Any, counts: NDArray[np.float64], resampling: Resampling) -> Score:
    """The score of N sentences; counts (N, K) as from `statistics` of this metric.

    Raises ValueError where the resampling is of another number of sentences.
    """
    if len(resampling.groups) != len(counts):
        raise ValueError(f"{len(counts)} hypotheses, but groups for {len(resampling.groups)} sentences")
    low, high = np.percentile(resampled_scores(metric, counts, resampling), [2.5, 97.5])
    return Score(score_of(metric, counts.sum(0)), float(low), float(high), str(metric.get_signature()))


def resampled_scores(metric: Any, counts: NDArray[np.float64], resampling: Resampling) -> NDArray[np.float64]:
    """(num_samples,) the score of each resampling; counts (N, K) are counts that add up over sentences.

    The same resampling draws the same groups whatever it scores, so scores of two systems come in pairs.
    """
    _, group = np.unique(np.array(resampling.groups), return_inverse=True)
    totals = np.zeros((int(group.max()) + 1, counts.shape[1]))
    np.add.at(totals, group, counts)
    random = np.random.default_rng(resampling.seed)
    scores = []
    for _ in range(resampling.num_samples):
        drawn = np.bincount(random.integers(len(totals), size=len(totals)), minlength=len(totals))
        scores.append(score_of(metric, drawn @ totals))
    return np.array(scores)


def _score(name: str, hypotheses: Sequence[str], references: References, resampling: Resampling) -> Score:
    metric = METRICS[name]()
    return score_of_counts(metric, statistics(metric, hypotheses, references), resampling)
