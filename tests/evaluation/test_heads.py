"""The table and the picture of heads: each number in its place."""

import csv
from pathlib import Path
from typing import Any

import pytest

from passerelle.evaluation.attention_statistics import HeadStatistics
from passerelle.evaluation.head_importance import HeadImportance, Importance
from passerelle.evaluation.heads import head_figure, head_rows, write_head_table
from passerelle.evaluation.heatmaps import save_png

PLACES = [(kind, layer, head) for kind in ("encoder", "cross") for layer in (1, 2) for head in (1, 2, 3)]
STATISTICS = [
    HeadStatistics(
        *place,
        0.1 * n,
        0.05 * n,
        0.03 * n,
        None if place[0] == "cross" else 1.0 * n,
        0.02 * n,
        0.5,
        None,
        0.9,
    )
    for n, place in enumerate(PLACES, start=1)
]
IMPORTANCE = Importance(tuple(HeadImportance(*place, 0.01 * n) for n, place in enumerate(PLACES)), 1.5, 40)


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return head_rows(STATISTICS, IMPORTANCE)


def test_the_table_has_a_row_for_each_head_and_nothing_where_nothing_applies(
    rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    write_head_table(tmp_path / "heads.csv", rows)
    with (tmp_path / "heads.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert len(found) == len(PLACES)
    assert (found[1]["kind"], found[1]["layer"], found[1]["head"]) == ("encoder", "1", "2")
    assert (float(found[1]["entropy"]), float(found[1]["loss_increase"])) == (0.2, 0.01)
    assert found[-1]["distance_tokens"] == found[-1]["on_begin"] == ""


def test_without_importance_its_column_is_empty() -> None:
    assert {row["loss_increase"] for row in head_rows(STATISTICS)} == {None}


def test_the_picture_shows_every_number_at_its_layer_and_head(rows: list[dict[str, Any]]) -> None:
    figure = head_figure(rows)
    grid = figure.axes
    titles = [axes.get_title().split("\n")[0] for axes in grid if axes.get_title()]
    assert titles == [
        "Loss without it",
        "Entropy",
        "Distance",
        "On the diagonal",
        "On the end </s>",
        "Divergence from",
    ]
    assert len(grid) == 2 * 6
    for number, name, form in ((0, "loss_increase", ".3f"), (1, "relative_entropy", ".2f")):
        for start, kind in ((0, "encoder"), (6, "cross")):
            texts = {tuple(text.get_position()): text.get_text() for text in grid[start + number].texts}
            expected = {
                (row["head"] - 1, row["layer"] - 1): f"{row[name]:{form}}"
                for row in rows
                if row["kind"] == kind
            }
            assert texts == expected


def test_a_measure_that_a_kind_lacks_leaves_its_place_blank(tmp_path: Path) -> None:
    begin = [HeadStatistics("decoder_self", 1, 1, 0.1, 0.1, 0.1, 1.0, 0.5, None, 0.7, None)]
    figure = head_figure(head_rows([STATISTICS[0], *begin]))
    blank = [axes for axes in figure.axes if not axes.axison]
    assert len(blank) == 3  # no end for decoder self-attention, neither beginning nor others for the encoder
    save_png(figure, tmp_path / "heads.png")
