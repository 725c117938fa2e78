"""Word-level differences: the nearest reference, and nothing lost on the way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passerelle.evaluation.report.differences import WORD, Span, differences


def shown(spans: list[Span]) -> list[tuple[str, str]]:
    return [(span.change, span.text) for span in spans]


def test_words_that_differ_stand_beside_each_other() -> None:
    _, spans = differences("Il vend un bateau.", ["Il vend deux bateaux."])
    assert shown(spans) == [
        ("same", "Il vend "),
        ("missing", "deux bateaux"),
        ("added", "un bateau"),
        ("same", "."),
    ]


def test_the_nearest_reference_counts_and_of_equals_the_first() -> None:
    references = ["Rien à voir.", "Je suis à la maison.", "Je suis chez moi."]
    assert differences("Je suis chez toi.", references)[0] == 2
    assert differences("Oui", ["Non", "Si"])[0] == 0


def test_equal_texts_have_one_span() -> None:
    assert differences("C'est l'été !", ["C'est l'été !"]) == (0, [Span("C'est l'été !", "same")])


@pytest.mark.parametrize("hypothesis", ["", " "])
def test_an_empty_translation_lacks_everything(hypothesis: str) -> None:
    assert shown(differences(hypothesis, ["Va !"])[1]) == [("missing", "Va !")]


@given(
    st.text("ab .!'’\u202f", max_size=12),
    st.lists(st.text("ab .!'\u202f", max_size=12), min_size=1, max_size=3),
)
def test_the_translation_can_be_read_from_its_spans(hypothesis: str, references: list[str]) -> None:
    nearest, spans = differences(hypothesis, references)
    read = "".join(span.text for span in spans if span.change != "missing")
    assert read == hypothesis.lstrip()
    kept = [word for span in spans if span.change != "added" for word in WORD.findall(span.text)]
    assert kept == WORD.findall(references[nearest])
