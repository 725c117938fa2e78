"""What is drawn: the right numbers in the right places, readable words, the same bytes each time."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from passerelle.evaluation.attention_maps import AttentionMap
from passerelle.evaluation.plots import attention_figure, readable, save_png, show_heatmaps

SOURCE = ("▁I", "'", "m", "▁home", "</s>")
GIVEN = ("<s>", "▁Je", "▁", "$x$")
CHOSEN = ("▁Je", "▁", "$x$", "</s>")


def random_weights(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), size=shape[:-1]).astype(np.float32)


@pytest.fixture
def attention() -> AttentionMap:
    weights = {
        "encoder": random_weights(2, 3, 5, 5),
        "decoder_self": random_weights(2, 3, 4, 4),
        "cross": random_weights(2, 3, 4, 5),
    }
    return AttentionMap("I'm home", "Je $x$", SOURCE, GIVEN, CHOSEN, weights)


def test_a_diagonal_matrix_gives_a_diagonal() -> None:
    figure = show_heatmaps(np.eye(6, dtype=np.float32)[None, None], x_label="keys", y_label="queries")
    [image] = figure.axes[0].images
    rgba = image.cmap(image.norm(image.get_array()))
    dark = rgba[..., 1] < 0.5  # green is low in dark red
    np.testing.assert_array_equal(dark, np.eye(6, dtype=bool))
    top_left = figure.axes[0].transData.transform((0, 0))
    bottom_right = figure.axes[0].transData.transform((5, 5))
    assert top_left[0] < bottom_right[0]
    assert top_left[1] > bottom_right[1]  # query 0 is on top


def test_every_matrix_stands_in_its_row_and_column(attention: AttentionMap) -> None:
    for kind, weights in attention.weights.items():
        figure = attention_figure(attention, kind)
        assert len(figure.axes) == 2 * 3 + 1  # and one colour bar
        for index, (layer, head) in enumerate(np.ndindex(2, 3)):
            [image] = figure.axes[index].images
            np.testing.assert_array_equal(image.get_array(), weights[layer, head])
        assert {axes.images[0].get_clim() for axes in figure.axes[:-1]} == {(0.0, float(weights.max()))}


def test_titles_and_labels_say_head_layer_and_axis(attention: AttentionMap) -> None:
    grid = attention_figure(attention, "cross").axes[:-1]
    assert [axes.get_title() for axes in grid] == ["Head 1", "Head 2", "Head 3", "", "", ""]
    labels = ["Layer 1\nqueries: target", "", "", "Layer 2\nqueries: target", "", ""]
    assert [axes.get_ylabel() for axes in grid] == labels
    assert [axes.get_xlabel() for axes in grid] == ["", "", "", *["keys: source"] * 3]


def test_words_stand_on_the_axes(attention: AttentionMap) -> None:
    figure = attention_figure(attention, "cross")
    first, last = figure.axes[0], figure.axes[5]
    assert [label.get_text() for label in last.get_xticklabels()] == ["I", "'", "m", "home", "</s>"]
    assert {label.get_rotation() for label in last.get_xticklabels()} == {90.0}
    words = [label.get_text() for label in first.get_yticklabels()]
    assert words == ["<s> → Je", "Je → ␣", "␣ → $x$", "$x$ → </s>"]
    shown = [
        label.get_text() for label in attention_figure(attention, "decoder_self").axes[0].get_yticklabels()
    ]
    assert shown == ["<s>", "Je", "␣", "$x$"]


def test_only_the_outer_heatmaps_show_words(attention: AttentionMap) -> None:
    grid = attention_figure(attention, "encoder").axes[:-1]
    with_columns = [index for index, axes in enumerate(grid) if axes.xaxis.get_tick_params()["labelbottom"]]
    with_rows = [index for index, axes in enumerate(grid) if axes.yaxis.get_tick_params()["labelleft"]]
    assert (with_columns, with_rows) == ([3, 4, 5], [0, 3])


@pytest.mark.parametrize("place", ["x_ticks", "title"])
def test_dollar_signs_are_no_formula(place: str, tmp_path: Path) -> None:
    text = r"$\wrong{$"  # would stop matplotlib's parser of formulas
    words = {"x_ticks": [text]} if place == "x_ticks" else {"title": text}
    figure = show_heatmaps(random_weights(1, 1, 1, 1), x_label="", y_label="", **words)  # type: ignore[arg-type]
    save_png(figure, tmp_path / "dollar.png")


def test_pieces_lose_the_mark_of_the_space() -> None:
    assert readable(["▁the", "ater", "▁", "</s>", "<0xC3>"]) == ["the", "ater", "␣", "</s>", "<0xC3>"]


def test_an_axis_with_too_many_words_has_none() -> None:
    ticks = [f"word{index}" for index in range(61)]
    matrices = random_weights(1, 1, 3, 61)
    figure = show_heatmaps(matrices, x_label="", y_label="", x_ticks=ticks, y_ticks=["a", "b", "c"])
    assert not any("word" in label.get_text() for label in figure.axes[0].get_xticklabels())
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b", "c"]


def test_the_picture_has_the_same_bytes_each_time(attention: AttentionMap, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        save_png(attention_figure(attention, "encoder"), tmp_path / name)
    content = (tmp_path / "a.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert content == (tmp_path / "b.png").read_bytes()
    assert b"Software" not in content
    assert b"tEXt" not in content


def test_a_word_that_the_font_lacks_is_no_warning(tmp_path: Path) -> None:
    figure = show_heatmaps(random_weights(1, 1, 1, 1), x_label="", y_label="", x_ticks=["🦊"], title="一つ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_png(figure, tmp_path / "fox.png")


def test_another_colour_map_can_be_chosen() -> None:
    figure = show_heatmaps(random_weights(1, 2, 3, 4), x_label="", y_label="", colour_map="viridis")
    assert figure.axes[1].images[0].cmap.name == "viridis"
