"""What a report shows, as plain values: it can be made, and drawn, without a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from passerelle.evaluation.attention_maps import AttentionMap

Cell = str | int | float | None
"""None is an empty cell."""


@dataclass(frozen=True)
class ReportScore:
    """A corpus score."""

    name: str
    """As readers know it: `BLEU`."""
    value: float
    """0 to 100, unless it says otherwise."""
    low: float | None
    """95 % of the resamplings are between low and high; None where there are none."""
    high: float | None
    signature: str
    """How it was computed."""


@dataclass(frozen=True)
class ScaleMark:
    """A BLEU to hold the model's beside, such as that of copying the source."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    is_model: bool = False
    """True for the model that the report is about."""


@dataclass(frozen=True)
class Table:
    """Any numbers with their names."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    """One or two sentences below it."""


@dataclass(frozen=True)
class Curve:
    """Lines over the optimiser's steps, in one chart."""

    title: str
    y_label: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    """Name -> (step, value), in the order of steps."""


@dataclass(frozen=True)
class ShownTranslation:
    """One test sentence."""

    number: int
    """In the test set, from 0."""
    source: str
    hypothesis: str
    references: tuple[str, ...]
    score: float
    """Of the sentence, 0 to 100."""
    is_finished: bool = True
    """False where the maximum length cut the hypothesis."""


@dataclass(frozen=True)
class ShownAttention:
    """A sentence of the explorer."""

    attention: AttentionMap
    reason: str = ""
    """Why it is shown: `chosen`, `one of the worst`."""


@dataclass(frozen=True)
class ReportContent:
    """All that the page shows; a part that is empty is left out."""

    title: str
    """The corpus's name, or what is evaluated."""
    subtitle: str
    """Languages, model, size: one line."""
    scores: tuple[ReportScore, ...]
    """The first is the headline."""
    scale: tuple[ScaleMark, ...] = ()
    score_tables: tuple[Table, ...] = ()
    """Scores of parts of the test set: by length, with unseen words."""
    curves: tuple[Curve, ...] = ()
    corpus_tables: tuple[Table, ...] = ()
    """Counts, rejections, leaks."""
    translations: Mapping[str, Sequence[ShownTranslation]] = field(default_factory=dict)
    """Name of a list (best, worst, random) -> what is in it."""
    languages: tuple[str, str] = ("en", "fr")
    """ISO 639 codes of source and target."""
    score_name: str = "chrF"
    """What `ShownTranslation.score` is."""
    attention: tuple[ShownAttention, ...] = ()
    heads: tuple[Mapping[str, Any], ...] = ()
    """`heads.head_rows`."""
    heads_note: str = ""
    """Over how many sentences the heads were measured."""
    lineage: Mapping[str, Any] = field(default_factory=dict)
    """Nested names and values."""
