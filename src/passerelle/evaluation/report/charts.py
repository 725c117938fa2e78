"""The charts of the report as Vega-Lite specifications (v6). Colours are the page's CSS variables, so that they
follow its light and dark theme; the colours of heatmaps are the theme's range `heatmap`, which `report.js` sets.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from passerelle.evaluation.heads import MEASURES, digits
from passerelle.evaluation.plots import TITLES
from passerelle.evaluation.report.content import Curve, ScaleMark

Spec = dict[str, Any]

MOST_POINTS = 500
"""Of one line; longer ones are thinned evenly."""
ROW_PIXELS = 46
"""For a bar and the name above it."""
NUMBER_DIGITS = 5
"""A cell's name is its position in so many characters, then `|`, then its word: names must differ, words repeat."""
WORD_OF_NAME = f"substring(datum.label, {NUMBER_DIGITS})"
LIGHT_TEXT = "var(--heat-text-high)"
DARK_TEXT = "var(--heat-text-low)"
LIGHT_TEXT_FROM = 0.62
"""Share of the scale of colours."""


def scale_chart(marks: Sequence[ScaleMark]) -> Spec:
    """Bars from zero, with intervals: the model's BLEU among others that give it a scale."""
    rows = [
        {"name": m.name, "BLEU": m.value, "low": m.low, "high": m.high, "model": m.is_model} for m in marks
    ]
    end = max([m.high or m.value for m in marks], default=0.0)
    x = {"type": "quantitative", "scale": {"domain": [0, max(end * 1.2, 1.0)]}}
    x_axis = {"title": "BLEU", "grid": True, "tickCount": 6}
    tooltip = [
        {"field": "name", "title": "translation"},
        {"field": "BLEU", "format": ".1f"},
        {"field": "low", "title": "95 % from", "format": ".1f"},
        {"field": "high", "title": "to", "format": ".1f"},
    ]
    text = {"type": "text", "align": "left", "baseline": "middle", "fontSize": 12.5, "color": "var(--ink)"}
    colour = {"condition": {"test": "datum.model", "value": "var(--accent)"}, "value": "var(--quiet)"}
    return {
        "data": {"values": rows},
        "width": "container",
        "height": ROW_PIXELS * len(rows),
        "encoding": {
            "y": {
                "field": "name",
                "type": "nominal",
                "sort": None,
                "axis": None,
            },
            "tooltip": tooltip,
        },
        "layer": [
            {
                "mark": {"type": "bar", "height": 16, "yOffset": 9, "cornerRadiusEnd": 3},
                "encoding": {"x": {**x, "field": "BLEU", "axis": x_axis}, "color": colour},
            },
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "yOffset": 9, "strokeWidth": 2, "color": "var(--ink)"},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "transform": [{"calculate": "max(datum.BLEU, datum.high)", "as": "right"}],
                "mark": {**text, "dx": 6, "dy": 9, "fontWeight": 600},
                "encoding": {"x": {**x, "field": "right"}, "text": {"field": "BLEU", "format": ".1f"}},
            },
            {
                "mark": {**text, "dx": 1, "dy": -9},
                "encoding": {"x": {"value": 0}, "text": {"field": "name"}},
            },
        ],
    }


def curve_chart(curve: Curve) -> Spec:
    """Lines over steps; the step under the pointer shows its values."""
    rows = [
        {"step": step, "value": value, "line": name}
        for name, points in curve.series.items()
        for step, value in _thinned(points)
    ]
    is_one = len(curve.series) == 1
    legend = None if is_one else {"title": None, "orient": "top-right"}
    return {
        "data": {"values": rows},
        "width": "container",
        "height": 230,
        "encoding": {
            "x": {
                "field": "step",
                "type": "quantitative",
                "axis": {"title": "optimiser step", "grid": False},
            },
            "y": {
                "field": "value",
                "type": "quantitative",
                "scale": {"zero": False},
                "axis": {"title": curve.y_label},
            },
            "color": {"field": "line", "type": "nominal", "sort": None, "legend": legend},
        },
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2}},
            _hover_points(curve.y_label),
        ],
    }


def head_charts(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, Spec]]:
    """Measure -> its name, and a heatmap of layers and heads for each kind of attention that has it."""
    charts = {}
    for measure, name in MEASURES.items():
        values = [
            {"kind": TITLES[row["kind"]], "layer": row["layer"], "head": row["head"], "value": row[measure]}
            for row in rows
            if row.get(measure) is not None
        ]
        if values:
            charts[measure] = name.replace("\n", " "), _head_chart(values, digits(measure))
    return charts


def attention_chart() -> Spec:
    """The explorer's heatmap; `report.js` fills in the cells, and the size of one."""
    return {
        "data": {"name": "cells", "values": []},
        "width": {"step": 30},
        "height": {"step": 30},
        "mark": {"type": "rect", "aria": False, "stroke": "var(--card)", "strokeWidth": 1, "cornerRadius": 2},
        "encoding": {
            "x": _words_axis("key", orient="top", labelAngle=-50, labelPadding=7),
            "y": _words_axis("query"),
            "color": {
                "field": "weight",
                "type": "quantitative",
                "scale": {"type": "sqrt", "domain": [0, 1], "range": "heatmap"},
                "legend": {
                    "title": "weight",
                    "orient": "bottom",
                    "gradientLength": 160,
                    "values": [0, 0.1, 0.3, 1],
                },
            },
            "tooltip": [
                {"field": "query_word", "title": "query"},
                {"field": "key_word", "title": "key"},
                {"field": "weight", "format": ".4f"},
            ],
        },
    }


def _hover_points(y_label: str) -> Spec:
    """The point nearest to the pointer, with its values; the others are not seen."""
    return {
        "params": [
            {
                "name": "hover",
                "select": {
                    "type": "point",
                    "fields": ["step"],
                    "nearest": True,
                    "on": "pointerover",
                    "clear": "pointerout",
                },
            }
        ],
        "mark": {"type": "circle", "size": 64, "aria": False},
        "encoding": {
            "opacity": {"condition": {"param": "hover", "empty": False, "value": 1}, "value": 0},
            "tooltip": [
                {"field": "line", "title": "of"},
                {"field": "step", "format": ",d"},
                {"field": "value", "title": y_label, "format": ".4~g"},
            ],
        },
    }


def _head_chart(values: list[dict[str, Any]], num_digits: int) -> Spec:
    numbers = [row["value"] for row in values]
    low, high = min(0.0, *numbers), max(*numbers, 1e-9)
    light_from = low + LIGHT_TEXT_FROM * (high - low)
    text_colour = {
        "condition": {"test": f"datum.value > {light_from}", "value": LIGHT_TEXT},
        "value": DARK_TEXT,
    }
    return {
        "data": {"values": values},
        "facet": {
            "field": "kind",
            "type": "nominal",
            "sort": list(TITLES.values()),
            "header": {"title": None, "labelFontWeight": 600},
        },
        "columns": 3,
        "spec": {
            "width": {"step": 52},
            "height": {"step": 40},
            "encoding": {
                "x": {"field": "head", "type": "ordinal", "axis": {"labelAngle": 0}},
                "y": {"field": "layer", "type": "ordinal"},
            },
            "layer": [
                {
                    "mark": {"type": "rect", "cornerRadius": 2},
                    "encoding": {
                        "color": {
                            "field": "value",
                            "type": "quantitative",
                            "scale": {"domain": [low, high], "range": "heatmap"},
                            "legend": None,
                        }
                    },
                },
                {
                    "mark": {"type": "text", "fontSize": 12, "aria": False},
                    "encoding": {
                        "text": {"field": "value", "format": f".{num_digits}f"},
                        "color": text_colour,
                    },
                },
            ],
        },
    }


def _words_axis(field: str, **axis: Any) -> Spec:
    title = {"key": "keys", "query": "queries"}[field]
    settings = {
        "title": title,
        "labelExpr": WORD_OF_NAME,
        "labelLimit": 130,
        "labelOverlap": False,
        "ticks": False,
        "domain": False,
        "aria": False,  # its table and readout say it better
    }
    return {"field": field, "type": "ordinal", "sort": None, "axis": {**settings, **axis}}


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most MOST_POINTS of them, evenly, the last among them."""
    stride = -(-len(points) // MOST_POINTS)
    return list(points[::-1][:: max(stride, 1)])[::-1]
