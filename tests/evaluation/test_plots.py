"""Pictures of attention: the right numbers in the right places, readable words, the same bytes each time."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from passerelle.evaluation.attention_maps import AttentionMap
from passerelle.evaluation.plots import attention_figure, readable, write_pictures

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


def test_pieces_lose_the_mark_of_the_space() -> None:
    assert readable(["▁the", "ater", "▁", "</s>", "<0xC3>"]) == ["the", "ater", "␣", "</s>", "<0xC3>"]


def test_every_kind_is_written_to_a_picture_of_its_own(attention: AttentionMap, tmp_path: Path) -> None:
    paths = write_pictures(attention, tmp_path, "01-im-home")
    assert [path.name for path in paths] == [f"01-im-home.{kind}.png" for kind in attention.weights]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
