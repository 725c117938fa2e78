"""Chart specifications: the right numbers in them, and specifications that Vega-Lite accepts."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from passerelle.evaluation.report.charts import (
    MOST_POINTS,
    attention_chart,
    curve_chart,
    head_charts,
    scale_chart,
)
from passerelle.evaluation.report.content import Curve, ScaleMark
from passerelle.evaluation.report.vega import VEGA_LITE, vega_script

MARKS = [ScaleMark("copy", 3.0), ScaleMark("this model", 50.0, 48.0, 52.0, is_model=True)]
HEADS = [
    {"kind": kind, "layer": layer, "head": head, "entropy": 1.0, "relative_entropy": 0.1 * layer + 0.01 * head,
     "on_end": None if kind == "decoder_self" else 0.5}
    for kind in ("encoder", "decoder_self") for layer in (1, 2) for head in (1, 2, 3)
]  # fmt: skip


def all_specs() -> dict[str, dict[str, Any]]:
    attention = attention_chart()
    attention["data"]["values"] = [{"key": "0000|a", "query": "0000|b", "weight": 0.5}]
    points = [(float(step), 1.0 / step) for step in range(1, 30)]
    return {
        "scale": scale_chart(MARKS),
        "curve": curve_chart(Curve("t", "y", {"a": points, "b": points[::5]})),
        "attention": attention,
        **{name: spec for name, (_, spec) in head_charts(HEADS).items()},
    }


@pytest.mark.parametrize("name", all_specs())
def test_vega_lite_accepts_the_specification(name: str) -> None:
    spec = json.loads(json.dumps(all_specs()[name], allow_nan=False).replace('"container"', "300"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    assert svg.startswith("<svg")


def test_the_model_is_the_bar_that_stands_out() -> None:
    spec = scale_chart(MARKS)
    assert [(row["name"], row["BLEU"], row["model"]) for row in spec["data"]["values"]] == [
        ("copy", 3.0, False),
        ("this model", 50.0, True),
    ]


def test_long_lines_are_thinned_and_end_where_they_end() -> None:
    points = [(float(step), float(-step)) for step in range(4 * MOST_POINTS + 3)]
    shown = [
        (row["step"], row["value"]) for row in curve_chart(Curve("t", "y", {"a": points}))["data"]["values"]
    ]
    assert len(shown) <= MOST_POINTS
    assert shown[-1] == points[-1]
    assert shown == sorted(shown)
    assert set(shown) <= set(points)


def test_measures_without_any_number_have_no_chart() -> None:
    charts = head_charts(HEADS)
    assert set(charts) == {"relative_entropy", "on_end"}
    assert charts["relative_entropy"][0] == "Entropy (share of highest)"
    assert {row["kind"] for row in charts["on_end"][1]["data"]["values"]} == {"Encoder self-attention"}


def test_the_script_can_stand_within_a_page(tmp_path: Path) -> None:
    script = vega_script()
    assert "</script" not in script
    assert "<!--" not in script
    assert len(script) < 2_000_000
