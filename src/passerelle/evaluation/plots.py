"""Attention as pictures: grids of heatmaps with words on the axes. Matplotlib is loaded when one is drawn."""

import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from passerelle.evaluation.attention_maps import AttentionMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INCHES_PER_TOKEN = 0.2
SMALLEST_INCHES, LARGEST_INCHES = 1.5, 12.0
MOST_TICKS = 60
"""A longer axis has no words on it: they would overlap."""
DOTS_PER_INCH = 130
CHARACTERS_PER_INCH = 9
"""Of the title."""
TITLES = {
    "encoder": "Encoder self-attention",
    "decoder_self": "Decoder self-attention",
    "cross": "Encoder-decoder attention",
}


def show_heatmaps(
    matrices: NDArray[np.float32],
    *,
    x_label: str,
    y_label: str,
    x_ticks: Sequence[str] = (),
    y_ticks: Sequence[str] = (),
    column_titles: Sequence[str] = (),
    row_labels: Sequence[str] = (),
    title: str = "",
    colour_map: str = "Reds",
) -> "Figure":
    """A grid of R x C heatmaps with one colour scale, from zero, and one colour bar.

    matrices (R, C, Q, K): row q of a heatmap is query q, the first on top. Ticks are the words of the K keys
    and the Q queries. Titles stand above the first row, row labels left of the first column.
    """
    from matplotlib.figure import Figure

    num_rows, num_columns, num_queries, num_keys = matrices.shape
    width, height = _inches(num_keys), _inches(num_queries)
    size = (num_columns * (width + 0.15) + 1.9, num_rows * (height + 0.15) + 1.5)
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
    grid = figure.subplots(num_rows, num_columns, squeeze=False)
    highest = float(matrices.max()) or 1.0
    for row, column in np.ndindex(num_rows, num_columns):
        axes: Any = grid[row, column]
        image = axes.imshow(matrices[row, column], cmap=colour_map, vmin=0.0, vmax=highest, aspect="auto")
        axes.tick_params(labelsize=8, length=2)
        _set_ticks(axes.xaxis, x_ticks, num_keys, rotation=90)
        _set_ticks(axes.yaxis, y_ticks, num_queries, rotation=0)
        axes.label_outer(remove_inner_ticks=True)
    for axes, text in zip(grid[0], column_titles, strict=False):
        axes.set_title(text, fontsize=10)
    for axes, text in zip(grid[:, 0], row_labels or [""] * num_rows, strict=True):
        axes.set_ylabel(f"{text}\n{y_label}" if text else y_label, fontsize=10)
    for axes in grid[-1]:
        axes.set_xlabel(x_label, fontsize=10)
    if title:
        lines = textwrap.wrap(title, int(size[0] * CHARACTERS_PER_INCH), max_lines=2, placeholder=" …")
        figure.suptitle("\n".join(lines), fontsize=11, parse_math=False)
    colour_bar = figure.colorbar(image, ax=grid, shrink=0.6, pad=0.02)
    colour_bar.ax.tick_params(labelsize=8)
    return figure


def attention_figure(attention: AttentionMap, kind: str) -> "Figure":
    """Layers x heads of one kind of attention, with the sentence's words on the axes.

    A row of encoder-decoder attention is named after the token given and the one chosen there, its answer.
    """
    source, given = readable(attention.source_tokens), readable(attention.target_tokens)
    chosen = readable(attention.predicted_tokens)
    queries, keys = {
        "encoder": (source, source),
        "decoder_self": (given, given),
        "cross": ([f"{before} → {after}" for before, after in zip(given, chosen, strict=True)], source),
    }[kind]
    num_layers, num_heads = attention.weights[kind].shape[:2]
    return show_heatmaps(
        attention.weights[kind],
        x_label="keys: " + ("target" if kind == "decoder_self" else "source"),
        y_label="queries: " + ("source" if kind == "encoder" else "target"),
        x_ticks=keys,
        y_ticks=queries,
        column_titles=[f"Head {head + 1}" for head in range(num_heads)],
        row_labels=[f"Layer {layer + 1}" for layer in range(num_layers)],
        title=f"{TITLES[kind]}: {attention.source} → {attention.translation}",
    )


def write_pictures(attention: AttentionMap, folder: Path, name: str) -> list[Path]:
    """Draw every kind of attention as `<name>.<kind>.png`; return the paths."""
    paths = []
    for kind in attention.weights:
        paths.append(folder / f"{name}.{kind}.png")
        save_png(attention_figure(attention, kind), paths[-1])
    return paths


def save_png(figure: "Figure", path: Path) -> None:
    """Write the picture; the same figure gives the same bytes."""
    with warnings.catch_warnings():
        # A word in a script that the bundled font lacks shows as boxes.
        warnings.filterwarnings("ignore", message=r"(?s)Glyph .* missing from font")
        figure.savefig(path, format="png", metadata={"Software": None})


def readable(pieces: Sequence[str]) -> list[str]:
    """Sub-word pieces as tick labels: without the mark of a space, which alone shows as `␣`."""
    return [piece.replace("\u2581", "") or "␣" for piece in pieces]


def _inches(num_tokens: int) -> float:
    return min(max(num_tokens * INCHES_PER_TOKEN, SMALLEST_INCHES), LARGEST_INCHES)


def _set_ticks(axis: Any, words: Sequence[str], num_tokens: int, rotation: int) -> None:
    if words and num_tokens <= MOST_TICKS:
        # Words may hold dollar signs, which would otherwise begin a formula.
        axis.set_ticks(range(num_tokens), words, rotation=rotation, parse_math=False)
