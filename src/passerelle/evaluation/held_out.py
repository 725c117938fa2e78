"""The sentences that stage `prepare` set aside, with all their references, as a model is asked for them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passerelle.corpus.typography import restore_typography
from passerelle.evaluation.corpus_statistics import check_texts
from passerelle.parquet import open_parquet

COLUMNS = ("source", "references", "group")


@dataclass(frozen=True)
class HeldOut:
    """N source sentences."""

    sources: list[str]
    references: list[list[str]]
    """Of each source at least one, with the typography that translations have."""
    groups: list[str]
    """Of each source the group that it was dealt with (`corpus.split`)."""


def read_held_out(parquet: Path, language: str) -> HeldOut:
    """The test or validation sentences, in the file's order; language is the target's.

    Raises ValueError where the file is missing, empty, or not what `prepare` writes.
    """
    with open_parquet(parquet) as file:
        table = file.read()
    names = ", ".join(table.column_names)
    if missing := set(COLUMNS) - set(table.column_names):
        raise ValueError(f"{parquet}: lacks {sorted(missing)}, has {names}; run stage prepare again")
    if not table.num_rows:
        raise ValueError(f"{parquet}: no test sentences; raise split.test_sentences in params.yaml")
    columns: list[Any] = [table.column(name).to_pylist() for name in COLUMNS]
    sources, references, groups = columns
    check_texts(sources, references)
    printed = [[restore_typography(text, language) for text in texts] for texts in references]
    return HeldOut(sources, printed, groups)
