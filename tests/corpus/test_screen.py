"""Which cleaned pairs are rejected, and why."""

import pytest

from passerelle.config import CleaningConfig
from passerelle.corpus.screen import (
    EMPTY_SOURCE,
    EMPTY_TARGET,
    LENGTH_RATIO,
    TOO_LONG,
    UNTRANSLATED,
    fault_of_pair,
    num_words,
)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("a b", "c", None),
        ("", "c", EMPTY_SOURCE),
        ("a", "", EMPTY_TARGET),
        ("", "", EMPTY_SOURCE),
        ("a " * 16 + "a", "b " * 9 + "b", None),
        ("a " * 17 + "a", "b " * 9 + "b", TOO_LONG),
        ("b " * 9 + "b", "a " * 17 + "a", TOO_LONG),
        ("a " * 9 + "a", "b", None),  # ten words: too short to judge
        ("a " * 10 + "a", "b " * 3 + "b", None),
        ("a " * 10 + "a", "b b b", LENGTH_RATIO),
        ("b b b", "a " * 10 + "a", LENGTH_RATIO),
        ("Bravo Anna.", "Bravo Anna.", None),
        ("Click here to unsubscribe", "Click here to unsubscribe", UNTRANSLATED),
    ],
)
def test_a_pair_is_rejected_for_one_reason(source: str, target: str, reason: str | None) -> None:
    assert fault_of_pair(source, target, CleaningConfig(max_words=17, max_length_ratio=3.0)) == reason


@pytest.mark.parametrize(
    ("text", "words"), [("one", 1), ("où est-il ?", 3), ("今日 は", 2 + 3), ("Tokyo は 東京", 3 + 3)]
)
def test_chinese_characters_and_kana_count_as_words_too(text: str, words: int) -> None:
    assert num_words(text) == words
