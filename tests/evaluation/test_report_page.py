"""The page: everything escaped, nothing loaded, the same bytes each time, small enough."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passerelle.evaluation.report import page as module
from passerelle.evaluation.report.content import ReportContent, ReportScore, ShownTranslation
from passerelle.evaluation.report.page import cell, explorer_data, script_data, write_report
from passerelle.evaluation.word_view import word_view
from report_example import MARKUP, example_content


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> ReportContent:
    return example_content(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def page(content: ReportContent, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, content)
    return path.read_text(encoding="utf-8")


class Page(HTMLParser):
    """Tags with their attributes, and the text outside of scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.within: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.within = [*self.within, tag] if tag in ("script", "style") else self.within

    def handle_endtag(self, tag: str) -> None:
        self.within = self.within[:-1] if tag in ("script", "style") else self.within

    def handle_data(self, data: str) -> None:
        self.text += "" if self.within else data


def embedded(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_markup_in_a_sentence_is_text(page: str) -> None:
    parsed = Page(page)
    assert sum(tag == "script" for tag, _ in parsed.tags) == 3  # data, Vega, ours
    assert not any(tag in ("b", "small") and not attributes for tag, attributes in parsed.tags if tag == "b")
    assert MARKUP in parsed.text
    assert "Phrasebook <small>" in parsed.text
    assert "<script>document" not in page


def test_the_page_loads_nothing(page: str) -> None:
    for tag, attributes in Page(page).tags:
        assert "src" not in attributes, tag
        assert attributes.get("href", "#").startswith(("#", "data:")), tag  # type: ignore[union-attr]
    assert "@import" not in page
    assert "url(" not in module.Path(module.__file__).with_name("style.css").read_text(encoding="utf-8")


def test_the_page_is_below_5_megabytes(page: str) -> None:
    assert len(page.encode()) < 5_000_000


def test_the_same_content_gives_the_same_bytes(content: ReportContent, page: str, tmp_path: Path) -> None:
    write_report(tmp_path / "again.html", content)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_scores_intervals_and_signatures_stand_in_the_text(page: str) -> None:
    text = " ".join(Page(page).text.split())
    assert "BLEU 49.9 95 %: 48.3 to 51.4" in text
    for score in (
        "49.90",
        "48.29 to 51.39",
        "nrefs:var|case:mixed|tok:13a",
        "38.50",
        "167,130",
        "0123abc",
        "0, 12345",
    ):
        assert score in text


def test_the_explorer_holds_the_weights_of_words_and_of_pieces(content: ReportContent, page: str) -> None:
    sentences = embedded(page)["attention"]
    for shown, sentence in zip(content.attention, sentences, strict=True):
        assert sentence["source"] == shown.attention.source
        for kind, weights in shown.attention.weights.items():
            view = sentence["kinds"][kind]["pieces"]
            found = np.array(view["weights"]).reshape(weights.shape) / module.UNITS
            np.testing.assert_allclose(found, weights, atol=0.51 / module.UNITS)
            words = sentence["kinds"][kind]["words"]
            assert words["keys"] == list(word_view(shown.attention, kind).keys)


def test_sentences_without_room_are_named(
    content: ReportContent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = len(script_data(explorer_data(content.attention[:1])[0][0]))
    monkeypatch.setattr(module, "ATTENTION_BYTES", first + 10)
    write_report(tmp_path / "report.html", content)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(embedded(page)["attention"]) == 1
    assert f"kept beside this page as tensors: {MARKUP} · We see a boat" not in page
    text = " ".join(Page(page).text.split())
    assert f"kept beside this page as tensors: {MARKUP} · {content.attention[2].attention.source}" in text


def test_parts_without_content_are_left_out(tmp_path: Path) -> None:
    write_report(
        tmp_path / "report.html", ReportContent("t", "s", (ReportScore("BLEU", 1.0, None, None, "sig"),))
    )
    tags = Page((tmp_path / "report.html").read_text(encoding="utf-8")).tags
    assert [attributes["id"] for tag, attributes in tags if tag == "section"] == ["scores"]
    links = [attributes["href"] for tag, attributes in tags if tag == "a"]
    assert links == ["#main", "#scores"]


def test_an_empty_translation_is_said_to_be_nothing(content: ReportContent, tmp_path: Path) -> None:
    row = ShownTranslation(0, "Go.", "", ("Va.",), 0.0)
    write_report(tmp_path / "report.html", replace(content, translations={"Worst": [row]}))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<p class="hypothesis" lang="fr"><del>Va.</del></p>' in page


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (167130, "167,130"),
        (49.8962, "49.90"),
        (0.0, "0.00"),
        (0.00123, "0.00123"),
        ("a", "a"),
        (True, "True"),
    ],
)
def test_cells_are_written_for_readers(value: Any, text: str) -> None:
    assert cell(value) == text


def test_data_of_a_script_holds_no_markup() -> None:
    value = {"a": "</script><!--&\u2028"}
    assert not set("<>&\u2028") & set(script_data(value))
    assert json.loads(script_data(value)) == value
