"""Every score of a set of translations: of the whole, of its parts, and of what gives the numbers a scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from passerelle.config import EvaluationConfig
from passerelle.evaluation.buckets import buckets
from passerelle.evaluation.held_out import HeldOut
from passerelle.evaluation.sanity import sanity_rows
from passerelle.evaluation.score_rows import ScoreRow
from passerelle.evaluation.scores import Resampling, Score, bleu, chrf, chrf_pp, first_references, ter

DIGITS = 4
"""After the point, in files."""


@dataclass(frozen=True)
class AllScores:
    """What was measured."""

    whole: dict[str, Score]
    """bleu, bleu_first_reference, bleu_greedy, chrf, chrf_pp and ter of the test set."""
    scale: list[ScoreRow]
    """`sanity.sanity_rows`."""
    parts: list[ScoreRow]
    """`buckets.buckets`."""
    interval: str
    """How intervals were made, in the manner of a sacreBLEU signature."""

    def numbers(self) -> dict[str, float]:
        """Of the whole: `bleu`, `bleu_low`, `bleu_high` and so on."""
        return _numbers(self.whole)

    def details(self) -> dict[str, dict[str, dict[str, float]]]:
        """Of `scale` and `parts`: for each row the count of sentences, and its scores like `numbers`."""
        return {
            kind: {
                row.name: {
                    "sentences": row.num_sentences,
                    **_numbers({"bleu": row.bleu, "chrf_pp": row.chrf_pp}),
                }
                for row in rows
            }
            for kind, rows in (("scale", self.scale), ("parts", self.parts))
        }

    def signatures(self) -> dict[str, str]:
        """How each score was computed, and the intervals."""
        return {**{name: score.signature for name, score in self.whole.items()}, "interval": self.interval}


def all_scores(
    beam: Sequence[str],
    greedy: Sequence[str],
    test: HeldOut,
    train_parquet: Path,
    config: EvaluationConfig,
) -> AllScores:
    """Of the translations of the test sentences by the search that was asked for, and by greedy search."""
    references = test.references
    resampling = Resampling(test.groups, config.bootstrap_samples, config.seed)
    return AllScores(
        whole={
            "bleu": bleu(beam, references, resampling),
            "bleu_first_reference": bleu(beam, first_references(references), resampling),
            "bleu_greedy": bleu(greedy, references, resampling),
            "chrf": chrf(beam, references, resampling),
            "chrf_pp": chrf_pp(beam, references, resampling),
            "ter": ter(beam, references, resampling),
        },
        scale=sanity_rows(beam, test, train_parquet, resampling),
        parts=buckets(beam, test, train_parquet, resampling),
        interval=resampling.describe(),
    )


def _numbers(scores: dict[str, Score]) -> dict[str, float]:
    numbers = {}
    for name, score in scores.items():
        numbers[name] = round(score.value, DIGITS)
        numbers[f"{name}_low"] = round(score.low, DIGITS)
        numbers[f"{name}_high"] = round(score.high, DIGITS)
    return numbers
