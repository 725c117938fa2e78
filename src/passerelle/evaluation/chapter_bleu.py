"""The BLEU of the chapter, and sacreBLEU's of one sentence to hold beside it.

The chapter scores one tokenised sentence against one other, with its own formula: precisions of short n-grams,
weighted 1/2, 1/4, ... and never smoothed. That makes two or four words comparable with a label, which they are
meant for; it is not the BLEU of papers (Papineni et al. 2002), which counts up to 4-grams over a whole corpus.
"""

import math
from collections import Counter
from collections.abc import Sequence

from sacrebleu.metrics import BLEU


def chapter_bleu(prediction: str, label: str, k: int = 2) -> float:
    """exp(min(0, 1 - L / P)) times p_n ** (1 / 2 ** n) for n from 1 to k; from 0 to 1.

    P and L count the tokens of prediction and label, which stand between spaces; p_n is the share of the
    prediction's n-grams that the label has too, each as often as it is there. n ends at P, since a shorter
    prediction has no longer n-grams; an empty one scores 0.
    """
    predicted, expected = prediction.split(), label.split()
    if not predicted:
        return 0.0
    score = math.exp(min(0.0, 1.0 - len(expected) / len(predicted)))
    for n in range(1, min(k, len(predicted)) + 1):
        found = _ngrams(predicted, n)
        score *= ((found & _ngrams(expected, n)).total() / found.total()) ** (1 / 2**n)
    return score


def sentence_bleu(hypothesis: str, references: Sequence[str]) -> float:
    """sacreBLEU of one sentence, 0 to 100: 4-grams or as long as there are, exponential smoothing, 13a tokens."""
    return float(BLEU(effective_order=True).sentence_score(hypothesis, list(references)).score)


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1))
