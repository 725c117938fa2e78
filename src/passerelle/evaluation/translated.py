"""The file of translations that stage `evaluate` writes, read back."""

import json
from dataclasses import dataclass
from typing import Any

FILE = "translations.jsonl"


@dataclass(frozen=True)
class Translated:
    """What a model made of N test sentences."""

    name: str
    """Where it comes from, for readers."""
    sources: list[str]
    references: list[list[str]]
    """Of each source at least one."""
    hypotheses: list[str]
    groups: list[str]
    """Of each source the group that it was dealt with (`corpus.split`)."""


def parse_translated(content: bytes, name: str) -> Translated:
    """The content of a translations.jsonl. Raises ValueError that names the line which is none."""
    if not content:
        raise ValueError(f"{name}: is empty; run stage evaluate again")
    lines = content.removesuffix(b"\n").split(b"\n")
    rows = [_row(line, f"{name}, line {number}") for number, line in enumerate(lines, start=1)]
    return Translated(
        name,
        sources=[row["source"] for row in rows],
        references=[row["references"] for row in rows],
        hypotheses=[row["hypothesis"] for row in rows],
        groups=[row["group"] for row in rows],
    )


def _row(line: bytes, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{place}: not JSON ({error}); expected a {FILE} of stage evaluate") from None
    texts = row if isinstance(row, dict) else {}
    for key in ("source", "hypothesis", "group"):
        if not isinstance(texts.get(key), str):
            raise ValueError(f"{place}: has no text {key!r}; expected a {FILE} of stage evaluate")
    references = texts.get("references")
    if not isinstance(references, list) or not references or not all(isinstance(x, str) for x in references):
        raise ValueError(f"{place}: has no list of references; expected a {FILE} of stage evaluate")
    return texts
