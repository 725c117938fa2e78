"""Statistics and importance of all heads as a table (CSV) and as a picture: layers down, heads across."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from passerelle.evaluation.attention_statistics import HeadStatistics
from passerelle.evaluation.head_importance import Importance
from passerelle.evaluation.heatmaps import DOTS_PER_INCH
from passerelle.evaluation.plots import TITLES
from passerelle.files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = {
    "loss_increase": "Loss without it\n(nats a token)",
    "relative_entropy": "Entropy\n(share of highest)",
    "distance": "Distance\n(share of length)",
    "on_diagonal": "On the diagonal\n(share)",
    "on_end": "On the end </s>\n(share)",
    "on_begin": "On the beginning <s>\n(share)",
    "divergence": "Divergence from\nother heads (bits)",
}
"""Columns of the picture; of the table all of `HeadStatistics` are."""
DIGITS = 5
LIGHT_TEXT_FROM = 0.6
"""Share of a colour scale above which its numbers are white."""

Row = Mapping[str, Any]


def head_rows(
    statistics: Sequence[HeadStatistics], importance: Importance | None = None
) -> list[dict[str, Any]]:
    """One row for each head: what was measured, by name; numbers with 5 digits after the point."""
    increases = (
        {(head.kind, head.layer, head.head): head.loss_increase for head in importance.heads}
        if importance
        else {}
    )
    rows = []
    for head in statistics:
        row = {**asdict(head), "loss_increase": increases.get((head.kind, head.layer, head.head))}
        rows.append({name: round(x, DIGITS) if isinstance(x, float) else x for name, x in row.items()})
    return rows


def digits(measure: str) -> int:
    """After the point, where there is little room: losses differ by thousandths, shares by hundredths."""
    return 3 if measure == "loss_increase" else 2


def write_head_table(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows as CSV; what does not apply is empty."""
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def head_figure(rows: Sequence[Row]) -> "Figure":
    """A row of heatmaps for each kind of attention, a column for each measure; colours go over a column."""
    from matplotlib.figure import Figure

    kinds = [kind for kind in TITLES if any(row["kind"] == kind for row in rows)]
    names = [name for name in MEASURES if any(row.get(name) is not None for row in rows)]
    num_layers, num_heads = max(row["layer"] for row in rows), max(row["head"] for row in rows)
    size = (len(names) * max(0.62 * num_heads, 1.6) + 1.6, len(kinds) * max(0.5 * num_layers, 0.8) + 1.4)
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
    grid = figure.subplots(len(kinds), len(names), squeeze=False)
    for column, name in enumerate(names):
        values = [row[name] for row in rows if row.get(name) is not None]
        limits = min(0.0, *values), max(values) or 1.0
        for axes, kind in zip(grid[:, column], kinds, strict=True):
            _draw(axes, _matrix(rows, kind, name, (num_layers, num_heads)), limits, digits(name))
        grid[0, column].set_title(MEASURES[name], fontsize=9)
    for axes, kind in zip(grid[:, 0], kinds, strict=True):
        axes.set_ylabel(f"{TITLES[kind].replace(' ', chr(10), 1)}\nlayer", fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel("head", fontsize=9)
    return figure


def _matrix(rows: Sequence[Row], kind: str, name: str, shape: tuple[int, int]) -> NDArray[np.float64]:
    """(layers, heads) of one measure; NaN where there is none."""
    matrix = np.full(shape, np.nan)
    for row in rows:
        if row["kind"] == kind and row.get(name) is not None:
            matrix[row["layer"] - 1, row["head"] - 1] = row[name]
    return matrix


def _draw(axes: Any, matrix: NDArray[np.float64], limits: tuple[float, float], num_digits: int) -> None:
    """A heatmap with its numbers; one without any is left away."""
    if np.isnan(matrix).all():
        axes.axis("off")
        return
    low, high = limits
    axes.imshow(np.ma.masked_invalid(matrix), cmap="Reds", vmin=low, vmax=high, aspect="auto")
    for (layer, head), value in np.ndenumerate(matrix):
        is_dark = (value - low) > LIGHT_TEXT_FROM * (high - low)
        axes.text(
            head,
            layer,
            f"{value:.{num_digits}f}",
            ha="center",
            va="center",
            fontsize=8,
            color="white" if is_dark else "black",
        )
    axes.set_xticks(range(matrix.shape[1]), range(1, matrix.shape[1] + 1), fontsize=8)
    axes.set_yticks(range(matrix.shape[0]), range(1, matrix.shape[0] + 1), fontsize=8)
    axes.tick_params(length=0)
