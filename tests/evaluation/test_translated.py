"""Translations read back from their file, and lines that are none."""

import json

import pytest

from passerelle.evaluation.translated import parse_translated

ROW = {
    "source": "We\u2028see.",
    "references": ["a\u0085b", "c"],
    "hypothesis": "d\u2029",
    "group": "7f",
    "score": 1,
}


def lines(*rows: object) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def test_each_line_is_a_sentence_whatever_separators_its_texts_hold() -> None:
    content = lines(ROW, {**ROW, "source": "", "references": ["e"]})
    translated = parse_translated(content, "a file")
    assert translated.name == "a file"
    assert translated.sources == ["We\u2028see.", ""]
    assert translated.references == [["a\u0085b", "c"], ["e"]]
    assert translated.hypotheses == ["d\u2029"] * 2
    assert translated.groups == ["7f"] * 2
    assert parse_translated(content.removesuffix(b"\n"), "a file") == translated


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"a file: is empty; run stage evaluate again"),
        (
            lines(ROW) + b"We see.\n",
            r"a file, line 2: not JSON \(Expecting value.*; expected a translations.jsonl",
        ),
        (lines(ROW) + b"\n" + lines(ROW), r"a file, line 2: not JSON"),
        (b"\xff\n", r"a file, line 1: not JSON \('utf-8' codec"),
        (
            lines([ROW]),
            r"a file, line 1: has no text 'source'; expected a translations.jsonl of stage evaluate",
        ),
        (lines({**ROW, "group": 3}), r"a file, line 1: has no text 'group'"),
        (lines({**ROW, "hypothesis": None}), r"a file, line 1: has no text 'hypothesis'"),
        (lines({**ROW, "references": "c"}), r"a file, line 1: has no list of references"),
        (lines({**ROW, "references": []}), r"a file, line 1: has no list of references"),
        (lines({**ROW, "references": ["c", None]}), r"a file, line 1: has no list of references"),
    ],
)
def test_what_is_no_translation_is_refused_with_its_line(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_translated(content, "a file")
