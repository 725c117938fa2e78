"""Two sets of translations of one test set: which is better, how surely, and where they differ."""

from collections.abc import Sequence
from dataclasses import dataclass

from passerelle.evaluation.paired import PairedScore, paired_score
from passerelle.evaluation.scores import Resampling, sentence_chrf
from passerelle.evaluation.translated import Translated

COMPARED = ("BLEU", "chrF++", "TER")


@dataclass(frozen=True)
class Change:
    """A sentence that the two sets translate differently."""

    index: int
    """In the test set."""
    first: str
    second: str
    first_chrf: float
    second_chrf: float

    @property
    def difference(self) -> float:
        """Second less first, in chrF of the sentence."""
        return self.second_chrf - self.first_chrf


@dataclass(frozen=True)
class Comparison:
    """What two sets of translations differ in."""

    scores: list[PairedScore]
    changes: list[Change]
    """All sentences that differ, the most changed first."""
    interval: str
    """How intervals and p were made, in the manner of a sacreBLEU signature."""


def compare(first: Translated, second: Translated, num_samples: int, seed: int) -> Comparison:
    """Score both with the same resampling over groups; ValueError where their test sets differ."""
    check_same_test_set(first, second)
    references = first.references
    resampling = Resampling(first.groups, num_samples, seed)
    return Comparison(
        [
            paired_score(metric, first.hypotheses, second.hypotheses, references, resampling)
            for metric in COMPARED
        ],
        _changes(first, second),
        resampling.describe(),
    )


def check_same_test_set(first: Translated, second: Translated) -> None:
    """Raises ValueError, saying what differs, unless both translate the same sentences in the same order."""
    message = f"{first.name} and {second.name} do not translate the same test set"
    counts = len(first.sources), len(second.sources)
    if counts[0] != counts[1]:
        raise ValueError(f"{message}: the first has {counts[0]:,} sentences, the second {counts[1]:,}")
    if first.sources != second.sources and sorted(first.sources) == sorted(second.sources):
        raise ValueError(
            f"{message} in the same order; evaluate both again from one data/prepared/test.parquet"
        )
    for what, ours, theirs in (
        ("source", first.sources, second.sources),
        ("references", first.references, second.references),
        ("group", first.groups, second.groups),
    ):
        _check_equal(what, ours, theirs, message)


def _check_equal(what: str, first: Sequence[object], second: Sequence[object], message: str) -> None:
    differing = [index for index, (one, other) in enumerate(zip(first, second, strict=True)) if one != other]
    if differing:
        index = differing[0]
        raise ValueError(
            f"{message}: {what} of sentence {index}: {_short(first[index])} in the first, "
            f"{_short(second[index])} in the second ({len(differing):,} of {len(first):,} sentences differ so)"
        )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _changes(first: Translated, second: Translated) -> list[Change]:
    pairs = enumerate(zip(first.hypotheses, second.hypotheses, strict=True))
    indices = [index for index, (one, other) in pairs if one != other]
    if not indices:
        return []
    references = [first.references[index] for index in indices]
    texts = [[translated.hypotheses[index] for index in indices] for translated in (first, second)]
    scores = [sentence_chrf(each, references) for each in texts]
    changes = [Change(*fields) for fields in zip(indices, *texts, *scores, strict=True)]
    return sorted(changes, key=lambda change: -abs(change.difference))
