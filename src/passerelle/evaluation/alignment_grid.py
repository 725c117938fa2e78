"""An alignment in a terminal: words of the translation down, words of the source across, shaded blocks between."""

import unicodedata

from passerelle.evaluation.attention_maps import AttentionMap
from passerelle.evaluation.word_view import word_view

SHADES = " ░▒▓█"
GAP = 2
"""Columns between words."""


def alignment_grid(attention: AttentionMap, num_columns: int) -> str:
    """Lines of at most num_columns, unless a single word is longer; what does not fit follows below.

    Weights are the mean over all layers and heads, between words: a summary, which hides what single heads do. The
    darkest block is the highest of them; the last line says how high that is.
    """
    view = word_view(attention, "cross")
    mean = view.weights.mean(axis=(0, 1))  # (Q, K)
    highest = float(mean.max())
    levels = (mean / highest * (len(SHADES) - 1)).round().astype(int)
    margin = max(map(_width, view.queries)) + GAP
    widths = [_width(word) for word in view.keys]
    lines = []
    for columns in _fitting(widths, num_columns - margin):
        header = "".join(_padded(view.keys[column], widths[column] + GAP) for column in columns)
        lines.append((" " * margin + header).rstrip())
        for word, row in zip(view.queries, levels, strict=True):
            blocks = "".join(SHADES[row[column]] * widths[column] + " " * GAP for column in columns)
            lines.append((_padded(word, margin) + blocks).rstrip())
        lines.append("")
    faintest = highest / (len(SHADES) - 1) / 2
    lines.append(f"{SHADES[-1]} {highest:.0%} of a row, the highest; {SHADES[1]} from {faintest:.0%}")
    return "\n".join(lines)


def _fitting(widths: list[int], room: int) -> list[list[int]]:
    """Columns in groups that fit side by side, each group at least one."""
    groups: list[list[int]] = []
    left = 0
    for column, width in enumerate(widths):
        if not groups or width > left:
            groups.append([])
            left = room
        groups[-1].append(column)
        left -= width + GAP
    return groups


def _padded(word: str, width: int) -> str:
    return word + " " * (width - _width(word))


def _width(word: str) -> int:
    """Columns of a terminal."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in word)
    return len(word) + wide - sum(unicodedata.combining(character) > 0 for character in word)
