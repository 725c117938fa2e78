"""Long texts in pieces: at sentences, then at words, and nothing lost."""

import pytest

from passerelle.corpus.clean import clean_text
from passerelle.decoding.long_lines import sentences, split_text


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Go. I lost! He's calm? Yes.", "en", ["Go.", "I lost!", "He's calm?", "Yes."]),
        ("Va ! Ça va ? Oui.", "fr", ["Va !", "Ça va ?", "Oui."]),
        (
            "« Oui ! » Il part. « Non. » Elle reste.",
            "fr",
            ["« Oui ! »", "Il part.", "« Non. »", "Elle reste."],
        ),
        ('"Go!" He went. (Really.) "Why?"', "en", ['"Go!"', "He went.", "(Really.)", '"Why?"']),
        ("Well… I see... Then go.", "en", ["Well...", "I see...", "Then go."]),
        ("What?! Really ?! No.", "en", ["What?!", "Really?!", "No."]),
        ("Mr. Smith met Mme. Blanc. M. Noir left.", "en", ["Mr. Smith met Mme. Blanc.", "M. Noir left."]),
        ("J. S. Bach wrote it. It is 3.14 long.", "en", ["J. S. Bach wrote it.", "It is 3.14 long."]),
        ("« Non ! » dit-il. Fin.", "fr", ["« Non ! » dit-il.", "Fin."]),
        ("all in small letters. no capital. none.", "en", ["all in small letters.", "no capital.", "none."]),
        ("我走了。你呢？好！", "zh", ["我走了。", "你呢？", "好！"]),
        ("彼は「行け。」と言った。雨だ。", "ja", ["彼は「行け。」", "と言った。", "雨だ。"]),
        ("यह घर है। वह कार है।", "hi", ["यह घर है।", "वह कार है।"]),
        ("هل أنت هنا؟ نعم.", "ar", ["هل أنت هنا؟", "نعم."]),
        ("no mark at all", "en", ["no mark at all"]),
        ("...", "en", ["..."]),
        ("", "en", []),
    ],
)
def test_sentences_end_at_their_marks(text: str, language: str, expected: list[str]) -> None:
    assert sentences(clean_text(text, language)) == [clean_text(piece, language) for piece in expected]


@pytest.mark.parametrize("most", [1, 3, 10, 40])
def test_pieces_fit_and_hold_all_words_in_order(most: int) -> None:
    text = (
        "One two three. " * 9 + "a b c d e f g h i j k l m n o p q r s t u v w x y z" + " Why? Because!" * 5
    )

    def fits(piece: str) -> bool:
        return len(piece.split()) <= most

    pieces = split_text(text, fits)
    assert all(fits(piece) for piece in pieces)
    assert " ".join(pieces).split() == text.split()


def test_what_fits_is_left_whole() -> None:
    assert split_text("Go. Stay.", lambda piece: True) == ["Go. Stay."]


def test_only_the_sentence_that_is_too_long_is_halved() -> None:
    text = "Go. One two three four five six. Stay."
    assert split_text(text, lambda piece: len(piece.split()) <= 3) == [
        "Go.", "One two three", "four five six.", "Stay."
    ]  # fmt: skip


def test_a_word_without_spaces_is_halved_too() -> None:
    text = "abcdefghij" * 7
    pieces = split_text(text, lambda piece: len(piece) <= 8)
    assert max(map(len, pieces)) <= 8
    assert "".join(pieces) == text


def test_a_character_that_never_fits_is_a_piece() -> None:
    assert split_text("ab c", lambda piece: False) == ["a", "b", "c"]


@pytest.mark.parametrize("run", ["!", "?!", "! ", ". ", "…", "!»", "。", "a. »"])
def test_a_long_run_of_marks_is_read_once(run: str) -> None:
    """Where a run can be read in several ways, their number doubles with each mark: 30 took an hour."""
    text = " ".join(f"A{run * 20_000}b c.".split())
    assert "".join(sentences(text)).replace(" ", "") == text.replace(" ", "")
