"""One page of HTML from a report's content: text, tables, charts and the script that draws them, all inlined."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from passerelle.evaluation.attention_maps import AttentionMap
from passerelle.evaluation.heads import MEASURES
from passerelle.evaluation.plots import TITLES
from passerelle.evaluation.report.charts import attention_chart, curve_chart, head_charts, scale_chart
from passerelle.evaluation.report.content import Cell, ReportContent, ShownAttention
from passerelle.evaluation.report.differences import differences
from passerelle.evaluation.report.vega import vega_script
from passerelle.evaluation.word_view import View, piece_view, word_view
from passerelle.files import whole_file

TEMPLATE, STYLE, SCRIPT = "page.html", "style.css", "report.js"
KINDS = {"cross": "Cross", "encoder": "Encoder self", "decoder_self": "Decoder self"}
"""Cross-attention first, since it is what most look for."""
UNITS = 10_000
"""A weight is written as a whole number of these parts of one: four digits, a fifth of the bytes."""
ATTENTION_BYTES = 2_500_000
"""Sentences of the explorer take so much of the page; those that do not fit are named below it."""
SMALLEST_PLAIN = 0.1
"""A smaller number of a table is written with three significant digits."""


def write_report(path: Path, content: ReportContent) -> None:
    """Write the page, whole or not at all; the same content gives the same bytes.

    Everything shown is escaped: markup in a sentence is text. The page loads nothing from anywhere.
    """
    folder = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = cell
    sentences, left_out = explorer_data(content.attention)
    heads = head_charts(content.heads)
    charts = {f"curve-{number}": curve_chart(curve) for number, curve in enumerate(content.curves)}
    if content.scale:
        charts["scale"] = scale_chart(content.scale)
    data = {
        "charts": charts,
        "heads": {measure: spec for measure, (_, spec) in heads.items()},
        "attention": sentences,
        "attention_chart": attention_chart(),
        "units": UNITS,
    }
    page = environment.get_template(TEMPLATE).render(
        content=content,
        measures={measure: name for measure, (name, _) in heads.items()},
        head_columns=MEASURES,
        lists=[(name.lower(), name) for name in content.translations],
        kind_titles=TITLES,
        kinds={kind: KINDS[kind] for kind in _kinds(content.attention)},
        sentences=sentences,
        left_out=left_out,
        differences=differences,
        data=script_data(data),
        style=(folder / STYLE).read_text(encoding="utf-8"),
        script=(folder / SCRIPT).read_text(encoding="utf-8"),
        vega=vega_script(),
    )
    with whole_file(path) as temporary:
        temporary.write_text(page + "\n", encoding="utf-8")


def explorer_data(shown: tuple[ShownAttention, ...]) -> tuple[list[dict[str, Any]], list[str]]:
    """The explorer's sentences, and the sources of those for which the page has no room."""
    sentences, left_out, room = [], [], ATTENTION_BYTES
    for one in shown:
        sentence = {
            "source": one.attention.source,
            "translation": one.attention.translation,
            "reason": one.reason,
            "kinds": {kind: _kind_data(one.attention, kind) for kind in one.attention.weights},
        }
        size = len(script_data(sentence))
        if size <= room:
            sentences.append(sentence)
            room -= size
        else:
            left_out.append(one.attention.source)
    return sentences, left_out


def script_data(value: Any) -> str:
    """JSON to stand within `<script type="application/json">`, whatever its strings hold."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def cell(value: Cell) -> str:
    """A value as a table shows it: thousands apart, two digits after the point."""
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if 0.0 < abs(value) < SMALLEST_PLAIN else f"{value:,.2f}"


def _kinds(shown: tuple[ShownAttention, ...]) -> list[str]:
    present = {kind for one in shown for kind in one.attention.weights}
    return [kind for kind in KINDS if kind in present]


def _kind_data(attention: AttentionMap, kind: str) -> Mapping[str, Any]:
    return {
        "words": _view_data(word_view(attention, kind)),
        "pieces": _view_data(piece_view(attention, kind)),
    }


def _view_data(view: View) -> dict[str, Any]:
    """weights[layer][head] is a flat list, queries by keys."""
    num_layers, num_heads = view.weights.shape[:2]
    units = np.rint(view.weights * UNITS).astype(int)
    return {
        "queries": view.queries,
        "keys": view.keys,
        "weights": units.reshape(num_layers, num_heads, -1).tolist(),
    }
