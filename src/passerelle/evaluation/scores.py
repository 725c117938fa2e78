"""BLEU and chrF of sacreBLEU, against any number of references a sentence, each with a confidence interval.

Hypotheses and references are detokenised text. A sentence's references are a list of its own, and sentences
may have different numbers of them: sacreBLEU then writes `nrefs:var` into the signature.

The interval is the bootstrap's (Koehn 2004): groups of sentences are drawn with replacement, as many as there
are, and scored, often. Groups, since sentences that share a source or a reference are not independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF

from passerelle.evaluation.corpus_statistics import References, check_texts, score_of, statistics


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
    """A corpus score, 0 to 100."""

    value: float
    low: float
    """95 % of the resamplings score between low and high."""
    high: float
    signature: str
    """sacreBLEU's, of the score itself."""


def bleu(hypotheses: Sequence[str], references: References, resampling: Resampling) -> Score:
    """Corpus BLEU (13a tokenisation, cased). Raises ValueError where the texts do not belong together."""
    return _score(BLEU(), hypotheses, references, resampling)


def chrf(hypotheses: Sequence[str], references: References, resampling: Resampling) -> Score:
    """Corpus chrF (chrF2); of several references the best counts. Raises ValueError like `bleu`."""
    return _score(CHRF(), hypotheses, references, resampling)


def sentence_chrf(hypotheses: Sequence[str], references: References) -> list[float]:
    """chrF of each sentence; unlike BLEU it means something for short ones. Raises ValueError like `bleu`."""
    check_texts(hypotheses, references)
    metric = CHRF()
    pairs = zip(hypotheses, references, strict=True)
    return [float(metric.sentence_score(hypothesis, list(texts)).score) for hypothesis, texts in pairs]


def first_references(references: References) -> list[list[str]]:
    """The first reference of each sentence alone."""
    return [list(texts[:1]) for texts in references]


def _score(metric: Any, hypotheses: Sequence[str], references: References, resampling: Resampling) -> Score:
    counts = statistics(metric, hypotheses, references)
    if len(resampling.groups) != len(hypotheses):
        raise ValueError(f"{len(hypotheses)} hypotheses, but groups for {len(resampling.groups)} sentences")
    low, high = _interval(metric, counts, resampling)
    return Score(score_of(metric, counts.sum(0)), low, high, str(metric.get_signature()))


def _interval(metric: Any, counts: NDArray[np.float64], resampling: Resampling) -> tuple[float, float]:
    """The 2.5th and 97.5th percentile; counts (N, K) are counts that add up over sentences."""
    _, group = np.unique(np.array(resampling.groups), return_inverse=True)
    totals = np.zeros((int(group.max()) + 1, counts.shape[1]))
    np.add.at(totals, group, counts)
    random = np.random.default_rng(resampling.seed)
    scores = []
    for _ in range(resampling.num_samples):
        drawn = np.bincount(random.integers(len(totals), size=len(totals)), minlength=len(totals))
        scores.append(score_of(metric, drawn @ totals))
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high)
