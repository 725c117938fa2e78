"""The example's pictures: fitted curves among the training points, and what each estimate attends to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from numpy.typing import NDArray

from passerelle.evaluation.heatmaps import DOTS_PER_INCH, save_png, show_heatmaps


def draw_curves(
    train: NDArray[Any], test: NDArray[Any], estimates: Mapping[str, NDArray[Any]], path: Path
) -> None:
    """train (2, K) and test (2, Q): rows x and y; estimates (Q,) by the name of the estimator."""
    figure = Figure(figsize=(6.0, 4.0), dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.subplots()
    axes.plot(*train, "o", color="0.7", markersize=4, label="training points")
    axes.plot(*test, "--", color="black", linewidth=1, label="true function")
    for name, estimate in estimates.items():
        axes.plot(test[0], estimate, label=name.replace("_", " "))
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    axes.legend(fontsize=8)
    save_png(figure, path)


def draw_weights(weights: NDArray[Any], name: str, path: Path) -> None:
    """weights (Q, K) of the sorted training points in each estimate of the estimator."""
    figure = show_heatmaps(
        weights,
        x_label="keys: training points, sorted",
        y_label="queries: test points, sorted",
        column_titles=[name.replace("_", " ").capitalize()],
    )
    save_png(figure, path)
