"""Which cleaned sentence pairs are not fit to learn from, and why."""

import re

from passerelle.config import CleaningConfig

EMPTY_SOURCE = "empty source"
EMPTY_TARGET = "empty target"
TOO_LONG = "too long"
LENGTH_RATIO = "length ratio"
UNTRANSLATED = "untranslated"
PAIR_REASONS = (EMPTY_SOURCE, EMPTY_TARGET, TOO_LONG, LENGTH_RATIO, UNTRANSLATED)

_RATIO_WORDS = 10
_COPY_WORDS = 3  # up to here a text may well be its own translation: "Tom!", "OK", "Bravo Anna."
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def fault_of_pair(source: str, target: str, config: CleaningConfig) -> str | None:
    """Why the cleaned pair is rejected, or None."""
    if not source:
        return EMPTY_SOURCE
    if not target:
        return EMPTY_TARGET
    source_words, target_words = num_words(source), num_words(target)
    shorter, longer = sorted((source_words, target_words))
    if longer > config.max_words:
        return TOO_LONG
    if longer > _RATIO_WORDS and longer > config.max_length_ratio * shorter:
        return LENGTH_RATIO
    if source == target and source_words > _COPY_WORDS:
        return UNTRANSLATED
    return None


def num_words(text: str) -> int:
    """Words of a cleaned text; Chinese characters and kana, written without spaces, count one more each."""
    words = text.count(" ") + 1
    return words if text.isascii() else words + len(_UNSPACED.findall(text))
