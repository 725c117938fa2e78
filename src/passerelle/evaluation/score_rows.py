"""One line of a table of scores: some sentences, or what is held beside the model, with their numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from passerelle.evaluation.corpus_statistics import References
from passerelle.evaluation.scores import Resampling, Score, bleu, chrf_pp


@dataclass(frozen=True)
class ScoreRow:
    """The scores of some translations."""

    name: str
    """For files of metrics: letters, digits and `_`."""
    meaning: str
    """For readers."""
    num_sentences: int
    """How many were scored."""
    bleu: Score
    chrf_pp: Score


def score_row(
    name: str, meaning: str, hypotheses: Sequence[str], references: References, resampling: Resampling
) -> ScoreRow:
    """The row of these hypotheses. Raises ValueError like `bleu`."""
    return ScoreRow(
        name,
        meaning,
        len(hypotheses),
        bleu(hypotheses, references, resampling),
        chrf_pp(hypotheses, references, resampling),
    )


def of_rows(resampling: Resampling, rows: Iterable[int]) -> Resampling:
    """The same resampling of the sentences with these indices, in this order, alone."""
    groups = [resampling.groups[row] for row in rows]
    return Resampling(groups, resampling.num_samples, resampling.seed)
