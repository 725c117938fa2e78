"""The report in a browser: what it shows is what was measured, by mouse, by keyboard, on a phone and in the dark."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passerelle.evaluation.attention_maps import AttentionMap
from passerelle.evaluation.report.content import ReportContent
from passerelle.evaluation.report.page import write_report
from passerelle.evaluation.word_view import piece_view, word_view
from report_example import MARKUP, NUM_SHOWN, example_content

webdriver = pytest.importorskip(
    "selenium.webdriver", reason="selenium is not installed: pip install -e '.[dev]'"
)

from selenium.webdriver import ActionChains, Keys  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
SECONDS = 120
ALL_DRAWN = (
    "return [...document.querySelectorAll('.chart, #chart-heads, #chart-attention')]"
    ".every((chart) => chart.dataset.drawn === 'yes')"
)

pytestmark = pytest.mark.skipif(
    not (CHROMIUM.exists() and DRIVER.exists()),
    reason="Chromium is absent: apt-get install chromium chromium-driver",
)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> ReportContent:
    return example_content(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def address(content: ReportContent, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, content)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.add_argument("--window-size=1280,1000")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(str(DRIVER)))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page, drawn; whatever a test does there, the console stays empty and nothing is fetched."""
    browser.get_log("browser")
    browser.get(address)
    wait_until(browser, ALL_DRAWN)
    yield browser
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)") == []


def wait_until(browser: Any, script: str) -> None:
    WebDriverWait(browser, SECONDS, poll_frequency=0.05).until(lambda driver: driver.execute_script(script))


def choose(page: Any, name: str, value: str) -> None:
    """Click a radio button, as a person does, or choose of a list."""
    element = page.find_element("id", name)
    if element.tag_name == "select":
        Select(element).select_by_value(value)
    else:
        click(page, element.find_element("css selector", f"label:has(input[value='{value}'])"))


def click(page: Any, element: Any) -> None:
    """Click where a person could: not below the navigation, which stays on top."""
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def shown_table(page: Any) -> tuple[list[str], list[str], list[list[str]]]:
    """Words of the columns, words of the rows, and the numbers, as they are written."""
    rows = page.execute_script(
        "return [...document.querySelectorAll('#weights tr')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    return rows[0][1:], [row[0] for row in rows[1:]], [row[1:] for row in rows[1:]]


def drawn(page: Any, number: int) -> list[Any]:
    """The cells of the heatmap, once there are so many."""
    selector = "#chart-attention .mark-rect.role-mark > path:not(.cursor)"
    wait_until(page, f"return document.querySelectorAll('{selector}').length === {number}")
    return page.find_elements("css selector", selector)


def axis_words(page: Any, axis: str) -> list[str]:
    number = ["keys", "queries"].index(axis)
    return page.execute_script(
        f"return [...document.querySelectorAll('#chart-attention .role-axis')[{number}]"
        ".querySelectorAll('.role-axis-label text')].map((text) => text.textContent)"
    )


def views(attention: AttentionMap) -> Iterator[tuple[str, str, Any]]:
    for kind in attention.weights:
        yield kind, "words", word_view(attention, kind)
        yield kind, "pieces", piece_view(attention, kind)


def readout(page: Any) -> str:
    return page.find_element("id", "readout").text


def test_every_number_is_that_of_the_dump(page: Any, content: ReportContent) -> None:
    for number in (0, 2):
        choose(page, "sentence", str(number))
        for kind, level, view in views(content.attention[number].attention):
            choose(page, "kind", kind)
            choose(page, "level", level)
            for layer in ("mean", "0", "1"):
                choose(page, "layer", layer)
                for head in ("mean", "0", "1", "2"):
                    choose(page, "head", head)
                    layers = slice(None) if layer == "mean" else [int(layer)]
                    heads = slice(None) if head == "mean" else [int(head)]
                    expected = view.weights[layers][:, heads].mean(axis=(0, 1))
                    keys, queries, numbers = shown_table(page)
                    assert (keys, queries) == (list(view.keys), list(view.queries))
                    np.testing.assert_allclose(np.array(numbers, dtype=float), expected, atol=1.1e-4)


def test_the_heatmap_has_words_on_both_axes_and_a_cell_for_each_weight(
    page: Any, content: ReportContent
) -> None:
    view = word_view(content.attention[2].attention, "cross")
    choose(page, "sentence", "2")
    choose(page, "kind", "cross")
    drawn(page, len(view.queries) * len(view.keys))
    assert axis_words(page, "keys") == list(view.keys)
    assert axis_words(page, "queries") == list(view.queries)


def test_the_pointer_over_a_cell_shows_its_weight(page: Any, content: ReportContent) -> None:
    view = piece_view(content.attention[0].attention, "encoder")
    choose(page, "kind", "encoder")
    choose(page, "level", "pieces")
    choose(page, "layer", "1")
    choose(page, "head", "2")
    wait_until(
        page,
        f"return document.querySelectorAll('#chart-attention .role-axis-label text').length === {2 * len(view.keys)}",
    )
    cells = drawn(page, len(view.queries) * len(view.keys))
    query, key = 1, 3
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", page.find_element("id", "heatmap"))
    ActionChains(page).move_to_element(cells[query * len(view.keys) + key]).perform()
    weight = f"{round(float(view.weights[1, 2, query, key]), 4):.4f}"
    wait_until(page, "return document.getElementById('readout').textContent.includes(' looks at ')")
    assert readout(page) == f"{view.queries[query]} looks at {view.keys[key]}: {weight}"
    wait_until(page, "return document.querySelector('#vg-tooltip-element.visible')")
    assert weight in page.find_element("id", "vg-tooltip-element").text


def test_pointing_at_a_word_shades_what_it_looks_at_most(page: Any, content: ReportContent) -> None:
    view = word_view(content.attention[2].attention, "encoder")
    choose(page, "sentence", "2")
    choose(page, "kind", "encoder")
    drawn(page, len(view.queries) * len(view.keys))
    word = page.find_elements("css selector", "#query-words .word")[1]
    click(page, word)
    row = view.weights[:, :, 1].mean(axis=(0, 1))
    assert word.text == view.queries[1]
    assert (
        readout(page)
        == f"{view.queries[1]} looks at {view.keys[row.argmax()]}: {readout(page).split(': ')[1]}"
    )
    darkness = page.execute_script(
        "return [...document.querySelectorAll('#key-words .word')].map((word) => word.style.background)"
    )
    levels = [luminance([float(part) for part in re.findall(r"[\d.]+", colour)[:3]]) for colour in darkness]
    assert np.argmin(levels) == row.argmax()
    assert np.argmax(levels) == row.argmin()


def test_the_keyboard_alone_reaches_and_moves_through_the_heatmap(page: Any, content: ReportContent) -> None:
    view = word_view(content.attention[0].attention, "cross")
    page.find_element("id", "head").send_keys(Keys.TAB)
    assert page.switch_to.active_element.get_attribute("id") == "heatmap"
    moves = [
        Keys.ARROW_RIGHT,
        Keys.ARROW_RIGHT,
        Keys.ARROW_DOWN,
        Keys.ARROW_LEFT,
        Keys.ARROW_UP,
        Keys.ARROW_UP,
    ]
    for move, (query, key) in zip(moves, [(0, 0), (0, 1), (1, 1), (1, 0), (0, 0), (0, 0)], strict=True):
        ActionChains(page).send_keys(move).perform()
        weight = float(view.weights[:, :, query, key].mean())
        text, shown = readout(page).rsplit(": ", 1)
        assert text == f"{view.queries[query]} looks at {view.keys[key]}"
        assert float(shown) == pytest.approx(weight, abs=1.1e-4)
    assert len(page.find_elements("css selector", "#chart-attention .cursor")) == 1


def test_every_control_can_be_reached_by_keyboard(page: Any) -> None:
    reached = set()
    page.execute_script("document.querySelector('.skip').focus()")
    for _ in range(200):
        active = page.switch_to.active_element
        reached.add(active.get_attribute("id") or active.get_attribute("name") or active.text)
        if active.get_attribute("id") == "measure":
            break
        ActionChains(page).send_keys(Keys.TAB).perform()
    assert {
        "Scores",
        "list",
        "find",
        "sentence",
        "kind",
        "level",
        "layer",
        "head",
        "heatmap",
        "measure",
    } <= reached


def test_a_small_picture_chooses_its_head_and_lets_it_go(page: Any) -> None:
    buttons = page.find_elements("css selector", "#thumbnails button")
    assert len(buttons) == 6
    click(page, buttons[4])
    chosen = [page.find_element("id", name).get_attribute("value") for name in ("layer", "head")]
    assert chosen == ["1", "1"]
    assert [button.get_attribute("aria-pressed") for button in buttons] == ["false"] * 4 + ["true", "false"]
    click(page, buttons[4])
    assert page.find_element("id", "layer").get_attribute("value") == "mean"


def test_markup_in_a_sentence_is_shown_as_text(page: Any, content: ReportContent) -> None:
    assert page.title == "Phrasebook <small> · Passerelle report"
    choose(page, "sentence", "1")
    choose(page, "kind", "encoder")
    assert page.find_element("id", "shown-source").text == MARKUP
    view = word_view(content.attention[1].attention, "encoder")
    drawn(page, len(view.queries) * len(view.keys))
    assert view.keys[0] == "<script>document.title"
    assert axis_words(page, "keys")[0].startswith(
        "<script>docu"
    )  # a long word is cut, and whole in the tooltip
    cell = drawn(page, len(view.queries) * len(view.keys))[0]
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", page.find_element("id", "heatmap"))
    ActionChains(page).move_to_element(cell).perform()
    wait_until(page, "return document.querySelector('#vg-tooltip-element.visible')")
    assert "<script>document.title" in page.find_element("id", "vg-tooltip-element").text
    assert readout(page).startswith("<script>document.title looks at <script>document.title: 0.")
    assert shown_table(page)[0] == list(view.keys)
    words = page.execute_script(
        "return [...document.querySelectorAll('.word')].map((word) => word.textContent)"
    )
    assert words == [*view.queries, *view.keys]
    assert not page.execute_script("return document.title.includes('taken')")


def test_lists_of_translations_are_chosen_searched_and_shown_whole(page: Any) -> None:
    def visible() -> list[str]:
        return page.execute_script(
            "return [...document.querySelectorAll('.translations > li')].filter((item) => item.offsetParent)"
            ".map((item) => item.querySelector('.source').textContent)"
        )

    worst = visible()
    assert worst[0] == MARKUP
    assert len(worst) == 10
    click(page, page.find_element("css selector", "#list-worst .more"))
    assert len(visible()) == NUM_SHOWN
    choose(page, "list", "best")
    assert visible() != worst
    choose(page, "list", "worst")
    page.find_element("id", "find").send_keys("bold")
    assert visible() == [MARKUP]
    assert page.find_element("id", "found").text == "1 found in this list"


def test_a_measure_of_heads_shows_its_numbers(page: Any, content: ReportContent) -> None:
    choose(page, "measure", "relative_entropy")
    expected = {f"{row['relative_entropy']:.2f}" for row in content.heads}
    script = "[...document.querySelectorAll('#chart-heads .mark-text.role-mark text')].map((text) => text.textContent)"
    wait_until(
        page, f"return {script}.length === {len(content.heads)} && {script}.includes('{max(expected)}')"
    )
    assert set(page.execute_script(f"return {script}")) == expected


def test_the_page_works_in_the_closed_frame_that_mlflow_shows_it_in(page: Any, address: str) -> None:
    frame = Path(address.removeprefix("file://")).with_name("frame.html")
    frame.write_text(
        '<link rel="icon" href="data:,"><iframe sandbox="allow-scripts" src="report.html"></iframe>'
    )
    page.get(frame.as_uri())
    page.switch_to.frame(0)
    wait_until(page, ALL_DRAWN)
    assert len(shown_table(page)[0]) > 1
    page.get(address)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(page: Any, scheme: str) -> None:
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    page.refresh()
    wait_until(page, ALL_DRAWN)
    assert page.execute_script("return document.documentElement.scrollWidth") <= PHONE["width"]
    choose(page, "kind", "encoder")
    choose(page, "head", "1")
    assert len(shown_table(page)[0]) > 1
    bar = page.execute_script(
        "return document.querySelector('#chart-scale svg').getBoundingClientRect().right"
    )
    assert bar <= PHONE["width"]


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_text_can_be_read_in_light_and_in_the_dark(page: Any, scheme: str, is_dark: bool) -> None:
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    colours = page.execute_script("""
        const numbers = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const card = numbers(getComputedStyle(document.querySelector('section')).backgroundColor);
        const texts = [...document.querySelectorAll('h2, .lead, td, .signature, .source, summary, nav a')]
            .map((element) => numbers(getComputedStyle(element).color));
        const drawn = [...document.querySelectorAll('svg .role-axis-label text')]
            .map((element) => numbers(getComputedStyle(element).fill));
        return [card, [...texts, ...drawn]];
    """)
    card, texts = colours
    assert (luminance(card) < 0.1) == is_dark
    assert len(texts) > 50
    for text in texts:
        bright, dim = sorted((luminance(text), luminance(card)), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, text  # WCAG 2.2, level AA


def luminance(colour: list[float]) -> float:
    """Relative luminance of sRGB (WCAG)."""
    parts = [part / 255 for part in colour]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
