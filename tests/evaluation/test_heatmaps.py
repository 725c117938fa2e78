"""Grids of heatmaps: every number in its place and its colour, down to the pixels of the file."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from numpy.typing import NDArray

from passerelle.evaluation.heatmaps import save_png, show_heatmaps
from source_imports import PACKAGE, own_imports

NO_LABELS = {"x_label": "", "y_label": ""}


def random_weights(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), size=shape[:-1]).astype(np.float32)


def cell_colours(figure: Figure, index: int, path: Path) -> NDArray[np.float32]:
    """(Q, K, 3): the pixel of the written picture in the middle of each cell of a heatmap."""
    save_png(figure, path)
    pixels = imread(path)
    axes: Any = figure.axes[index]
    num_queries, num_keys = axes.images[0].get_array().shape
    centres = np.stack(np.meshgrid(np.arange(num_keys), np.arange(num_queries)), axis=-1).reshape(-1, 2)
    columns, heights = np.round(axes.transData.transform(centres)).astype(int).T
    colours = pixels[pixels.shape[0] - heights, columns, :3]
    return np.asarray(colours.reshape(num_queries, num_keys, 3))


def test_a_diagonal_matrix_gives_a_diagonal_of_pixels(tmp_path: Path) -> None:
    figure = show_heatmaps(np.eye(5, 7), **NO_LABELS)
    green = cell_colours(figure, 0, tmp_path / "diagonal.png")[..., 1]  # low in dark red, high in pale
    np.testing.assert_array_equal(green < 0.2, np.eye(5, 7, dtype=bool))
    np.testing.assert_array_equal(green > 0.9, ~np.eye(5, 7, dtype=bool))


def test_every_matrix_has_its_place_and_all_share_one_scale(tmp_path: Path) -> None:
    matrices = np.zeros((2, 3, 4, 5))
    for index, (row, column) in enumerate(np.ndindex(2, 3)):
        matrices[row, column, row, column] = 1 + index
    figure = show_heatmaps(matrices, colour_map="gray", **NO_LABELS)
    assert len(figure.axes) == 2 * 3 + 1  # and one colour bar
    for index, (row, column) in enumerate(np.ndindex(2, 3)):
        grey = cell_colours(figure, index, tmp_path / "grid.png")[..., 0]
        np.testing.assert_allclose(grey, matrices[row, column] / 6, atol=1 / 255)
    bar: Any = figure.axes[-1]
    assert bar.get_ylim() == (0.0, 6.0)


@pytest.mark.parametrize("shape", [(4, 5), (1, 4, 5), (1, 1, 4, 5)])
def test_one_matrix_needs_no_grid_around_it(shape: tuple[int, ...]) -> None:
    matrix = random_weights(4, 5)
    figure = show_heatmaps(matrix.reshape(shape), **NO_LABELS)
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), matrix)
    assert len(figure.axes) == 2


def test_one_row_needs_no_grid_around_it() -> None:
    row = random_weights(3, 4, 5)
    figure = show_heatmaps(row, column_titles=["a", "b", "c"], row_labels=["row"], x_label="x", y_label="y")
    for axes, matrix, text in zip(figure.axes[:3], row, "abc", strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), matrix)
        assert (axes.get_title(), axes.get_xlabel()) == (text, "x")
    assert [axes.get_ylabel() for axes in figure.axes[:3]] == ["row\ny", "", ""]


@pytest.mark.parametrize("shape", [(5,), (1, 1, 1, 2, 2), (2, 0, 4, 5)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"matrices must be \(Q, K\), .* none of them 0, but is \(\d"):
        show_heatmaps(np.zeros(shape), **NO_LABELS)


@pytest.mark.parametrize(
    ("name", "number"), [("x_ticks", 5), ("y_ticks", 4), ("column_titles", 3), ("row_labels", 2)]
)
def test_texts_that_do_not_match_the_grid_are_refused(name: str, number: int) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be {number} texts, or none, but is 6"):
        show_heatmaps(random_weights(2, 3, 4, 5), **NO_LABELS, **{name: list("abcdef")})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[0.2, 0.7]], (0.0, 0.7)),
        ([[0.0, 0.0]], (0.0, 1.0)),
        ([[-0.3, 0.7]], (-0.7, 0.7)),
        ([[-2.0, 0.7]], (-2.0, 2.0)),
        ([[np.nan, 0.7, np.inf, -np.inf]], (0.0, 0.7)),
        ([[np.nan]], (0.0, 1.0)),
    ],
)
def test_colours_go_from_zero_or_as_far_below_it_as_above(
    matrix: list[list[float]], expected: tuple[float, float]
) -> None:
    [image] = show_heatmaps(matrix, **NO_LABELS).axes[0].images
    assert image.get_clim() == expected


def test_zero_is_white_and_signs_differ_where_there_are_negative_values(tmp_path: Path) -> None:
    figure = show_heatmaps([[-1.0, 0.0, 0.5]], **NO_LABELS)
    negative, zero, positive = cell_colours(figure, 0, tmp_path / "signs.png")[0]
    assert negative[2] > negative[0]  # blue
    assert zero.min() > 0.95
    assert positive[0] > positive[2]  # red


def test_limits_can_be_given() -> None:
    [image] = show_heatmaps([[-1.0, 3.0]], limits=(-5.0, 4.0), **NO_LABELS).axes[0].images
    assert image.get_clim() == (-5.0, 4.0)


def test_limits_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match=r"limits must be \(lowest, highest\), but is \(1\.0, 0\.0\)"):
        show_heatmaps([[0.5]], limits=(1.0, 0.0), **NO_LABELS)


def test_what_is_no_number_stays_blank(tmp_path: Path) -> None:
    figure = show_heatmaps([[np.nan, 1.0, -np.inf]], colour_map="viridis", **NO_LABELS)
    not_a_number, one, infinite = cell_colours(figure, 0, tmp_path / "blank.png")[0]
    np.testing.assert_array_equal(not_a_number, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(infinite, [1.0, 1.0, 1.0])
    assert one[2] < 0.5  # yellow, the end of that map


@pytest.mark.parametrize("place", ["x_ticks", "title"])
def test_dollar_signs_are_no_formula(place: str, tmp_path: Path) -> None:
    text = r"$\wrong{$"  # would stop matplotlib's parser of formulas
    words = {"x_ticks": [text]} if place == "x_ticks" else {"title": text}
    save_png(show_heatmaps([[1.0]], **NO_LABELS, **words), tmp_path / "dollar.png")  # type: ignore[arg-type]


def test_an_axis_with_too_many_words_has_none() -> None:
    ticks = [f"word{index}" for index in range(61)]
    figure = show_heatmaps(random_weights(3, 61), **NO_LABELS, x_ticks=ticks, y_ticks=["a", "b", "c"])
    assert not any("word" in label.get_text() for label in figure.axes[0].get_xticklabels())
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b", "c"]


def test_only_words_make_a_long_axis_longer() -> None:
    sizes = [
        show_heatmaps(
            random_weights(1, num_keys), **NO_LABELS, x_ticks=["word"] * num_words
        ).get_size_inches()
        for num_keys, num_words in [(20, 0), (60, 0), (60, 60), (61, 61)]
    ]
    widths = [width for width, _ in sizes]
    assert widths[0] == widths[1] == widths[3] < widths[2]


def test_a_word_that_the_font_lacks_is_no_warning(tmp_path: Path) -> None:
    figure = show_heatmaps([[1.0]], **NO_LABELS, x_ticks=["🦊"], title="一つ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_png(figure, tmp_path / "fox.png")


def test_the_picture_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        save_png(show_heatmaps(random_weights(2, 3, 4, 5), x_label="x", y_label="y"), tmp_path / name)
    content = (tmp_path / "a.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert content == (tmp_path / "b.png").read_bytes()
    assert b"Software" not in content
    assert b"tEXt" not in content


def test_the_file_can_be_lifted_alone() -> None:
    assert own_imports(PACKAGE / "evaluation/heatmaps.py") == set()
