"""BLEU and chrF of sacreBLEU, against any number of references a sentence, each with a confidence interval.

Hypotheses and references are detokenised text. A sentence's references are a list of its own, and sentences
may have different numbers of them: sacreBLEU then writes `nrefs:var` into the signature.

The interval is the bootstrap's (Koehn 2004): groups of sentences are drawn with replacement, as many as there
are, and scored, often. Groups, since sentences that share a source or a reference are not independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF

References = Sequence[Sequence[str]]


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


def check_texts(hypotheses: Sequence[str], references: References) -> None:
    """Raises ValueError unless there are hypotheses, and a list of references for each."""
    if isinstance(hypotheses, str) or isinstance(references, str) or not hypotheses:
        raise ValueError("nothing to score: expected a list of hypotheses and a list of lists of references")
    for index, texts in enumerate(references):
        if isinstance(texts, str) or not texts or not all(isinstance(text, str) for text in texts):
            raise ValueError(
                f"references of sentence {index}: expected a list of at least one text, "
                f"found {str(texts)[:60]!r}"
            )
    if len(references) != len(hypotheses):
        hint = ""
        if {len(texts) for texts in references} == {len(hypotheses)}:
            hint = (
                "; they look transposed: give one list for each sentence, not one for each set of references"
            )
        raise ValueError(
            f"{len(hypotheses)} hypotheses, but references for {len(references)} sentences{hint}"
        )


def _score(metric: Any, hypotheses: Sequence[str], references: References, resampling: Resampling) -> Score:
    check_texts(hypotheses, references)
    if len(resampling.groups) != len(hypotheses):
        raise ValueError(f"{len(hypotheses)} hypotheses, but groups for {len(resampling.groups)} sentences")
    # sacreBLEU wants one list for each set of references, None where a sentence has no more.
    sets = [list(texts) for texts in zip_longest(*references)]
    statistics = np.array(metric._extract_corpus_statistics(hypotheses, sets), dtype=np.float64)
    low, high = _interval(metric, statistics, resampling)
    value = float(metric._compute_score_from_stats(statistics.sum(0)).score)
    return Score(value, low, high, str(metric.get_signature()))


def _interval(metric: Any, statistics: NDArray[np.float64], resampling: Resampling) -> tuple[float, float]:
    """The 2.5th and 97.5th percentile; statistics (N, K) are counts that add up over sentences."""
    _, group = np.unique(np.array(resampling.groups), return_inverse=True)
    totals = np.zeros((int(group.max()) + 1, statistics.shape[1]))
    np.add.at(totals, group, statistics)
    random = np.random.default_rng(resampling.seed)
    scores = []
    for _ in range(resampling.num_samples):
        drawn = np.bincount(random.integers(len(totals), size=len(totals)), minlength=len(totals))
        scores.append(metric._compute_score_from_stats(drawn @ totals).score)
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high)
