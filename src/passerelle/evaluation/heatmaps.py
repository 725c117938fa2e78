"""A grid of matrices as heatmaps. Imports nothing of this project; matplotlib is loaded when a grid is drawn."""

import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INCHES_PER_CELL = 0.2
SMALLEST_INCHES, LARGEST_INCHES = 1.5, 4.0
MOST_WORDS = 60
"""A longer axis has no words on it; a shorter one that has may be longer than LARGEST_INCHES."""
DOTS_PER_INCH = 130
CHARACTERS_PER_INCH = 9
"""Of the title."""
FROM_ZERO, AROUND_ZERO = "Reds", "RdBu_r"
"""The colour maps of matrices without and with negative values, where none is named."""


def show_heatmaps(
    matrices: ArrayLike,
    *,
    x_label: str,
    y_label: str,
    x_ticks: Sequence[str] = (),
    y_ticks: Sequence[str] = (),
    column_titles: Sequence[str] = (),
    row_labels: Sequence[str] = (),
    title: str = "",
    colour_map: str | None = None,
    limits: tuple[float, float] | None = None,
) -> "Figure":
    """A grid of R x C heatmaps with one colour scale and one colour bar.

    matrices (R, C, Q, K), or one row (C, Q, K), or one matrix (Q, K): row q of a heatmap is query q, the first
    on top. Ticks are the words of the K keys and the Q queries. Titles stand above the first row, row labels
    left of the first column. Colours go over `limits`; without them from zero to the highest value or, where
    there are negative ones, as far below zero as above. NaN and infinity stay blank.
    """
    from matplotlib.figure import Figure

    matrices = _as_grid(matrices)
    num_rows, num_columns, num_queries, num_keys = matrices.shape
    _check_number("x_ticks", x_ticks, num_keys)
    _check_number("y_ticks", y_ticks, num_queries)
    _check_number("column_titles", column_titles, num_columns)
    _check_number("row_labels", row_labels, num_rows)
    lowest, highest = limits or _limits(matrices)
    if not lowest < highest:
        raise ValueError(f"limits must be (lowest, highest), but is {limits}")
    colours = colour_map or (AROUND_ZERO if lowest < 0.0 else FROM_ZERO)
    width, height = _inches(num_keys, x_ticks), _inches(num_queries, y_ticks)
    size = (num_columns * (width + 0.15) + 1.9, num_rows * (height + 0.15) + 1.5)
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
    grid = figure.subplots(num_rows, num_columns, squeeze=False)
    for row, column in np.ndindex(num_rows, num_columns):
        axes: Any = grid[row, column]
        cells = np.ma.masked_invalid(matrices[row, column])
        image = axes.imshow(cells, cmap=colours, vmin=lowest, vmax=highest, aspect="auto")
        axes.tick_params(labelsize=8, length=2)
        _set_ticks(axes.xaxis, x_ticks, rotation=90)
        _set_ticks(axes.yaxis, y_ticks, rotation=0)
        axes.label_outer(remove_inner_ticks=True)
    for axes, text in zip(grid[0], column_titles or [""] * num_columns, strict=True):
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


def save_png(figure: "Figure", path: Path) -> None:
    """Write the picture; the same figure gives the same bytes."""
    with warnings.catch_warnings():
        # A word in a script that the bundled font lacks shows as boxes.
        warnings.filterwarnings("ignore", message=r"(?s)Glyph .* missing from font")
        figure.savefig(path, format="png", metadata={"Software": None})


def _as_grid(matrices: ArrayLike) -> NDArray[np.float64]:
    """(Q, K), (C, Q, K) or (R, C, Q, K) -> (R, C, Q, K)."""
    grid = np.asarray(matrices, dtype=np.float64)
    if not 2 <= grid.ndim <= 4 or not grid.size:
        raise ValueError(
            f"matrices must be (Q, K), (C, Q, K) or (R, C, Q, K), none of them 0, but is {grid.shape}"
        )
    return grid.reshape((1,) * (4 - grid.ndim) + grid.shape)


def _check_number(name: str, texts: Sequence[str], number: int) -> None:
    if texts and len(texts) != number:
        raise ValueError(f"{name} must be {number} texts, or none, but is {len(texts)}")


def _limits(matrices: NDArray[np.float64]) -> tuple[float, float]:
    """From zero to the highest finite value; symmetric about zero where one is negative."""
    finite = matrices[np.isfinite(matrices)]
    lowest, highest = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    extent = max(-lowest, highest) or 1.0
    return (-extent if lowest < 0.0 else 0.0), extent


def _inches(num_cells: int, words: Sequence[str]) -> float:
    wanted = max(num_cells * INCHES_PER_CELL, SMALLEST_INCHES)
    return wanted if _is_shown(words) else min(wanted, LARGEST_INCHES)


def _is_shown(words: Sequence[str]) -> bool:
    return 0 < len(words) <= MOST_WORDS


def _set_ticks(axis: Any, words: Sequence[str], rotation: int) -> None:
    if _is_shown(words):
        # Words may hold dollar signs, which would otherwise begin a formula.
        axis.set_ticks(range(len(words)), words, rotation=rotation, parse_math=False)
