"""Cleaning: one spelling for each character, and nothing changes when it is done twice."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from passerelle.corpus.clean import clean_text
from passerelle.corpus.typography import restore_typography

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
HEART_ON_FIRE = "\u2764\ufe0f\u200d\U0001f525"
WALES = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"

# Characters that the rules speak about, so that random texts meet them often.
TRICKY = (
    " \t\n\r\u00a0\u2009\u202f\u200b\u200c\u200d\u00ad\ufeff\u2028\x85\x00?!:;«»…‽.,'\"’“()[]-/&#09aéEÉ"
    "\u0301\u030a\u0338\u2126\u212b\u2190\u037e\u1100\u1161СсаеоРυΟ"
    "\u2764\ufe0f\U0001f468\U0001f3fd\U0001f3f4\U000e0067\U000e007f"
)
texts = st.text(st.one_of(st.sampled_from(TRICKY), st.characters(exclude_categories=("Cs",))), max_size=24)
languages = st.sampled_from(["fr", "en", "fra", "de"])


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Go.", "Go."),
        ("", ""),
        ("  Va \t bien\u00a0\u202f\u2009ici\u3000", "Va bien ici"),
        ("one\rtwo\u2028three\x85four\vfive", "one two three four five"),
        ("sur \u200b\u200bla", "sur la"),
        ("sink\u00ad.", "sink."),
        ("\ufeffGo\u200e\u202a.\u202c", "Go."),
        ("a\x00b\x07c\x9fd\x7f", "abcd"),
        ("e\u0301te\u0301", "été"),
        ("e\u00ad\u0301", "é"),
        ("\u00a0", ""),
        ("\u200b", ""),
        ("C’est “bien” ‘oui’ „so“", 'C\'est "bien" \'oui\' "so"'),
        ("J‘aime", "J'aime"),
        ("Wait…", "Wait..."),
        ("H₂O, 10 €, triple–pane — naïve œuvre ½", "H₂O, 10 €, triple–pane — naïve œuvre ½"),
    ],
)
def test_each_character_has_one_spelling(text: str, cleaned: str) -> None:
    assert clean_text(text, "en") == cleaned


@pytest.mark.parametrize(
    "text",
    [
        FAMILY,
        f"Bravo {FAMILY} et {HEART_ON_FIRE}.",
        WALES,
        "\U0001f3c3\u200d\u2642\ufe0f",
        "\U0001f44d\U0001f3fd",
        "1\ufe0f\u20e3",
        "می\u200cخواهم",  # Persian needs its non-joiner
        "क्\u200dष",
        "Привет, мир.",
        "Καλημέρα",
        "日本語です。",
    ],
)
def test_emoji_and_other_scripts_survive(text: str) -> None:
    assert clean_text(text, "fr") == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\u200db", "ab"),
        ("\u200d\U0001f525", "\U0001f525"),
        ("\U0001f525\u200d", "\U0001f525"),
        ("a\U000e0067\U000e007fb", "ab"),
    ],
)
def test_joiners_and_tags_that_join_nothing_go(text: str, cleaned: str) -> None:
    assert clean_text(text, "en") == cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("С’est un pont gentil.", "C'est un pont gentil."),  # Cyrillic С
        ("the capitаl of", "the capital of"),  # Cyrillic а
        ("Seοul", "Seoul"),  # Greek omicron
        ("С", "С"),  # alone, it may be meant
        ("Сom", "Com"),
        ("Тоm", "Тоm"),  # mostly Cyrillic
        ("alphaβ", "alphaβ"),  # looks like no Latin letter
        ("alphаβ", "alphаβ"),  # nor does one of its two foreign letters
        ("Москва", "Москва"),
    ],
)
def test_lookalike_letters_become_latin_only_in_latin_words(text: str, cleaned: str) -> None:
    assert clean_text(text, "fr") == cleaned


@settings(deadline=None)
@given(texts, languages)
@example("е\u0301bcd", "en")
@example("abе\u0301cС", "fr")
@example("\u2190\u200d\u2190\u200d\u0338", "en")
def test_cleaning_twice_is_cleaning_once(text: str, language: str) -> None:
    cleaned = clean_text(text, language)
    assert clean_text(cleaned, language) == cleaned


@settings(deadline=None)
@given(texts, languages)
def test_cleaning_undoes_restored_typography(text: str, language: str) -> None:
    cleaned = clean_text(text, language)
    assert clean_text(restore_typography(cleaned, language), language) == cleaned


@settings(deadline=None)
@given(texts, languages)
def test_a_cleaned_text_has_single_plain_spaces_and_composed_letters(text: str, language: str) -> None:
    cleaned = clean_text(text, language)
    assert cleaned == " ".join(cleaned.split())
    assert unicodedata.is_normalized("NFC", cleaned)
    assert not [character for character in cleaned if unicodedata.category(character) == "Cc"]


@settings(deadline=None)
@given(texts, languages)
def test_cleaning_keeps_every_digit_and_mark(text: str, language: str) -> None:
    def kept(text: str) -> list[str]:
        return [character for character in text if character in "0123456789?!:«»&#/-"]

    assert kept(clean_text(text, language)) == kept(text)
