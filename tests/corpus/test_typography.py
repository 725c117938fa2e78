"""The spaces around French punctuation: uniform for training, put back for readers, measured."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passerelle.corpus.clean import clean_text
from passerelle.corpus.typography import restore_typography, typography_accuracy

NARROW, FULL = "\u202f", "\u00a0"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Va !", "Va !"),
        ("Cours\u202f!", "Cours !"),
        ("Es-tu là?", "Es-tu là ?"),
        ("Es-tu là \u202f?", "Es-tu là ?"),
        ("Dis:oui; non;", "Dis:oui ; non ;"),
        ("Dites: « oui »", "Dites : « oui »"),
        ("dites «ouistiti».", "dites « ouistiti »."),
        ("«\u00a0Regarde.\u00a0»", "« Regarde. »"),
        ("« Qui le dit?» «Moi!»", "« Qui le dit ? » « Moi ! »"),
        ("Quoi?!", "Quoi ?!"),
        ("Tu plaisantes\u202f?\u202f!", "Tu plaisantes ?!"),
        ("Aïe\u00a0!! Non!!!", "Aïe !! Non !!!"),
        ("Quoi...?", "Quoi... ?"),
        ("Quel pont! Pas vrai?", "Quel pont ! Pas vrai ?"),
        ('"Tais-toi"! dit-il', '"Tais-toi" ! dit-il'),
        ('"Qui est-ce?" "Moi!"', '"Qui est-ce ?" "Moi !"'),
        ("(vraiment?)", "(vraiment ?)"),
        ("Bonjour:)", "Bonjour :)"),
        # Left alone: inside words, after what opens, at the beginning.
        ("Il est 12:30.", "Il est 12:30."),
        ("Le train de 4 :10.", "Le train de 4:10."),
        ("Un score de 2 : 3", "Un score de 2 : 3"),
        ("Voir http://x.fr/?q=1&a=b;c", "Voir http://x.fr/?q=1&a=b;c"),
        ("Voir « https://x.fr/a:b »?", "Voir « https://x.fr/a:b » ?"),
        ("Voir http://x.fr/Non!,_2 ici", "Voir http://x.fr/Non!,_2 ici"),
        ("R&amp; B et std::x", "R&amp; B et std::x"),
        ("Super :D :-)", "Super :D :-)"),
        ("(?)", "(?)"),
        ("( ?)", "(?)"),
        ('"?" et "!"', '"?" et "!"'),
        ('Il dit " ! "', 'Il dit " ! "'),
        ("?", "?"),
        ("«?»", "« ? »"),
        ("«»", "« »"),
        ("« »", "« »"),
        ("dit «", "dit «"),
    ],
)
def test_french_has_one_plain_space_around_its_marks(text: str, cleaned: str) -> None:
    assert clean_text(text, "fr") == cleaned
    assert clean_text(cleaned, "fr") == cleaned


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Go !", "Go!"),
        ("Really\u202f?", "Really?"),
        ("Really ? ! Yes :", "Really?! Yes:"),
        ("a ; b", "a; b"),
        ("Across the bridge ...", "Across the bridge ..."),
        ("Nice :) and :D", "Nice :) and :D"),
        ("see .x ?y=1", "see .x ?y=1"),
        ("« Oui » (?)", "« Oui » (?)"),
        ("The train is at 3:30.", "The train is at 3:30."),
    ],
)
def test_other_languages_have_no_space_before_their_marks(text: str, cleaned: str, language: str) -> None:
    assert clean_text(text, language) == cleaned


@pytest.mark.parametrize("language", ["fr", "fra", "fre"])
def test_restored_french_has_narrow_and_full_spaces(language: str) -> None:
    text = "« Quoi ?! » dit-il ; voici : « ! »"
    restored = f"«{FULL}Quoi{NARROW}?!{FULL}» dit-il{NARROW}; voici{FULL}: «{NARROW}!{FULL}»"
    assert restore_typography(text, language) == restored


@pytest.mark.parametrize("text", ["Who ?", "« a » : b ;"])
def test_restoring_leaves_other_languages_alone(text: str) -> None:
    assert restore_typography(text, "en") == text


@settings(deadline=None)
@given(st.text(st.sampled_from(" ?!:;«»ab.\"'()1/&"), max_size=20))
def test_restored_cleaned_french_is_wholly_accurate(text: str) -> None:
    assert typography_accuracy([restore_typography(clean_text(text, "fr"), "fr")], "fr") == 1.0


@pytest.mark.parametrize(
    ("texts", "language", "share"),
    [
        ([], "fr", 1.0),
        (["Aucune marque."], "fr", 1.0),
        ([f"Va{NARROW}!", f"Va{FULL}!", "Va !", "Va!"], "fr", 0.5),
        ([f"«{FULL}oui{FULL}»"], "fr", 1.0),
        ([f"«oui{NARROW}»"], "fr", 0.5),
        ([f"Quoi{NARROW}?!"], "fr", 1.0),
        (["Quoi ?!", "Il est 12:30."], "fr", 0.5),
        (["Go!", "Go !", f"Go{NARROW}!", "It is: so"], "en", 0.5),
    ],
)
def test_accuracy_is_the_share_of_marks_with_the_right_space(
    texts: list[str], language: str, share: float
) -> None:
    assert typography_accuracy(texts, language) == share


@pytest.mark.parametrize("language", ["fr", "en"])
@pytest.mark.parametrize("run", ["?", "? ", " ?", "!", ":", ": ", ";", "«", " »", "a !"])
@pytest.mark.parametrize("end", ["x", "", "//x", " "])
def test_a_line_of_100_kb_is_cleaned_however_it_repeats_itself(language: str, run: str, end: str) -> None:
    """Where a run is looked at again from each of its marks, this takes a quarter of an hour."""
    cleaned = clean_text(run * (99_000 // len(run)) + end, language)
    assert clean_text(cleaned, language) == cleaned
