"""The bundled corpus as a whole: size, order, sentences that it must have, spacing, several translations."""

import hashlib
import os
import re
import subprocess
import sys
from collections import defaultdict

import pytest

from passerelle.corpus.phrasebook import idioms, phrasebook_pairs

NARROW = "\u202f"

MUST_HAVE = (
    """
I don't have a dog.|Je n'ai pas de chien.
You don't have a dog.|Tu n'as pas de chien.
You don't have a dog.|Vous n'avez pas de chien.
My friend doesn't have a car.|Mon amie n'a pas de voiture.
Do you have an umbrella?|Est-ce que vous avez un parapluie_?
The girls had a dog.|Les filles avaient un chien.
Does she like school?|Est-ce qu'elle aime l'école_?
Do they like school?|Est-ce qu'ils aiment l'école_?
Anne loves school.|Anne adore l'école.
I love school.|J'adore l'école.
We don't like school.|Nous n'aimons pas l'école.
Where is the old castle?|Où est le vieux château_?
Where is the hospital?|Où est l'hôpital_?
Where is the church?|Où est l'église_?
Where is the station?|Où est la gare_?
It's eight o'clock.|Il est huit heures.
It's noon.|Il est midi.
I'm eleven years old.|J'ai onze ans.
She's eight years old.|Elle a huit ans.
Good evening!|Bonsoir_!
Thank you very much!|Merci beaucoup_!
You're welcome.|De rien.
How are you?|Comment ça va_?
How are you?|Comment allez-vous_?
I love you.|Je t'aime.
I miss you.|Tu me manques.
What time is it?|Quelle heure est-il_?
It's raining cats and dogs.|Il pleut des cordes.
I'm late.|Je suis en retard.
Better late than never.|Mieux vaut tard que jamais.
Nobody came.|Personne n'est venu.
""".strip()
    .replace("_", NARROW)
    .splitlines()
)

MUST_CONTAIN = (
    "cette vieille maison", "cet hôtel", "ce vieil ", "un nouvel ordinateur", "un bel oiseau", "ce vieux hibou",
    "mon amie", "son écharpe", "son horloge", "des haricots", "d'huile", "au hockey", "de la harpe", "du héros",
    "aux enfants", "à l'hôpital", "près de la gare", "Est-ce qu'Anne", "Quelles pommes", "de vieilles chaussures",
    "s'est levée", "se sont couchés", "sont allées", "l'avez pas aidée", "ne joue jamais", "ne travaille plus",
    "n'y a pas de", "Je suis fatiguée", "iront", "J'habitais",
)  # fmt: skip
ORDERS = (
    "read|write|buy|sell|look|open|close|wash|visit|watch|listen|help|take|repair|eat|wait|talk|forget|choose"
)


def test_there_are_thousands_of_pairs_and_no_pair_twice(pairs: list[tuple[str, str]]) -> None:
    assert 9000 <= len(pairs) <= 12000
    assert len(set(pairs)) == len(pairs)
    assert 200 <= len(idioms()) <= 350


def test_two_calls_and_two_processes_give_the_same_pairs(pairs: list[tuple[str, str]]) -> None:
    assert phrasebook_pairs() == pairs
    script = (
        "import hashlib; from passerelle.corpus.phrasebook import phrasebook_pairs;"
        "print(hashlib.sha256(repr(phrasebook_pairs()).encode()).hexdigest())"
    )
    here = hashlib.sha256(repr(pairs).encode()).hexdigest()
    for seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.strip() == here


@pytest.mark.parametrize("line", MUST_HAVE)
def test_the_corpus_has_this_pair(line: str, pairs: list[tuple[str, str]]) -> None:
    assert tuple(line.split("|")) in pairs


@pytest.mark.parametrize("part", MUST_CONTAIN)
def test_some_sentence_contains(part: str, french: list[str]) -> None:
    assert any(part in sentence for sentence in french)


def test_every_line_is_a_sentence_of_1_to_15_words(pairs: list[tuple[str, str]]) -> None:
    for sentence in (side for pair in pairs for side in pair):
        assert 1 <= len(sentence.split()) <= 15, sentence
        assert sentence[0].isupper(), sentence
        assert re.search(r'[.?!][" »\xa0]*$', sentence), sentence
        assert "  " not in sentence, sentence
        assert sentence == sentence.strip(), sentence


def test_typography_is_french_on_the_french_side_alone(pairs: list[tuple[str, str]]) -> None:
    for english, french in pairs:
        assert re.search("[\u00a0\u202f«»]", english) is None, english
        assert re.search("(?<!\u202f)[?!;]|(?<!\u00a0)[:»]|«(?!\u00a0)", french) is None, french
        assert ("?" in english) == ("?" in french), french
        assert re.search("[\u2019\t]", english + french) is None, french


def test_one_english_sentence_has_several_translations_only_for_a_reason(
    pairs: list[tuple[str, str]],
) -> None:
    translations = defaultdict(set)
    for english, french in pairs:
        translations[english].add(french)
    spoken = {english for english, _ in idioms()}
    for english, several in translations.items():
        is_open = re.search(r"\b(you|your|they|my friend|I|I'm|you're|they're)\b", english, re.IGNORECASE)
        is_order = re.match(rf"(Don't )?({ORDERS})\b", english, re.IGNORECASE)
        assert len(several) == 1 or is_open or is_order or english in spoken, (english, several)
    assert sum(len(several) > 1 for several in translations.values()) < len(translations) / 6


def test_the_vocabulary_is_small(pairs: list[tuple[str, str]]) -> None:
    made = [pair for pair in pairs if pair not in set(idioms())]
    for side, most in ((0, 550), (1, 900)):
        words = {word for pair in made for word in re.findall(r"[^\W\d]+", pair[side].lower())}
        assert 300 < len(words) < most
