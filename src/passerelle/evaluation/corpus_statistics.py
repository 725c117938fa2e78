"""A corpus score as sacreBLEU makes it: counts of each sentence that add up, and the score of their sum.

So a score of any part of a test set, of a resampling, or of all workers' shares is made of the same counts.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

References = Sequence[Sequence[str]]
"""Of each sentence a list of its own, of at least one text."""


def statistics(metric: Any, hypotheses: Sequence[str], references: References) -> NDArray[np.float64]:
    """(N, K) counts of each sentence under a metric of sacreBLEU. Raises ValueError like `check_texts`."""
    check_texts(hypotheses, references)
    # sacreBLEU wants one list for each set of references, None where a sentence has no more.
    sets = [list(texts) for texts in zip_longest(*references)]
    return np.array(metric._extract_corpus_statistics(hypotheses, sets), dtype=np.float64)


def score_of(metric: Any, totals: NDArray[np.float64]) -> float:
    """The corpus score, 0 to 100, of sentences whose counts add up to totals (K,)."""
    return float(metric._compute_score_from_stats(totals).score)


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
