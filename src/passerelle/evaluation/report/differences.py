"""What differs between a translation and the reference that is nearest to it, word by word."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

WORD = re.compile(r"\w+(?:['’]\w+)*['’]?|[^\w\s]+")
"""A word with its apostrophes, or a run of marks."""

Change = Literal["same", "added", "missing"]


@dataclass(frozen=True)
class Span:
    """Words that stand together."""

    text: str
    change: Change
    """`added`: the translation has it and the reference not; `missing`: the other way round."""


def differences(hypothesis: str, references: Sequence[str]) -> tuple[int, list[Span]]:
    """Number of the nearest reference (ties: the first), and the hypothesis beside it, in order.

    Nearest by difflib's ratio over words, compared as they are written. Spaces belong to the words before them and
    are not compared.
    """
    words = _words(hypothesis)
    matchers = [
        SequenceMatcher(
            None, [text for text, _ in _words(reference)], [text for text, _ in words], autojunk=False
        )
        for reference in references
    ]
    ratios = [matcher.ratio() for matcher in matchers]
    nearest = ratios.index(max(ratios))
    expected = _words(references[nearest])
    spans: list[Span] = []
    for operation, first, last, begin, end in matchers[nearest].get_opcodes():
        if operation == "equal":
            spans.append(Span(_joined(words[begin:end]), "same"))
            continue
        if first < last:
            spans.append(Span(_joined(expected[first:last]), "missing"))
        if begin < end:
            spans.append(Span(_joined(words[begin:end]), "added"))
    return nearest, spans


def _words(text: str) -> list[tuple[str, str]]:
    """Each word or run of marks, and the spaces behind it."""
    found = list(WORD.finditer(text))
    ends = [*(match.start() for match in found), len(text)][1:]
    return [(match[0], text[match.end() : end]) for match, end in zip(found, ends, strict=True)]


def _joined(words: Sequence[tuple[str, str]]) -> str:
    return "".join(text + spaces for text, spaces in words)
