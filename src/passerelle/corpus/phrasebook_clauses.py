"""Noun phrases and clauses in both languages side by side, and the rule that thins large products of them."""

import hashlib
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from passerelle.corpus import english_grammar as english
from passerelle.corpus import french_grammar as french
from passerelle.corpus.french_grammar import Words
from passerelle.corpus.phrasebook_nouns import NOUNS
from passerelle.corpus.phrasebook_words import ADJECTIVES, NUMBERS, Action, Subject

Pair = tuple[str, str]

FRENCH_NEGATIONS = {"not": "pas", "never": "jamais", "anymore": "plus"}
FRENCH_ADVERBS = {"often": "souvent", "always": "toujours"}
FRENCH_TENSES = {"used": "imperfect"}
# name: English singular, English plural, French masculine singular (some and mass: after `de`)
DETERMINERS = {
    "a": ("a", "", "un"),
    "the": ("the", "the", "le"),
    "this": ("this", "these", "ce"),
    "some": ("some", "some", "le"),
    "mass": ("", "", "le"),
    "generic": ("", "", "le"),
}


class Phrase(NamedTuple):
    """A complement; the second pair of fields is its form under negation (any milk, de lait)."""

    english: str
    french: Words
    english_negated: str
    french_negated: Words


class Clause(NamedTuple):
    """A clause without capital and mark; `is_question` asks for both languages' question marks."""

    english: str
    french: Words
    is_question: bool = False


FORMS = ("plain", "not", "ask")
NOTHING = Phrase("", (), "", ())


def fixed(english_text: str, french_text: str) -> Phrase:
    """A complement that negation leaves as it is."""
    words = tuple(french_text.split())
    return Phrase(english_text, words, english_text, words)


def joined(first: Phrase, second: Phrase) -> Phrase:
    """Two complements, one after the other."""
    return Phrase(
        f"{first.english} {second.english}",
        first.french + second.french,
        f"{first.english_negated} {second.english}",
        first.french_negated + second.french,
    )


def own(subject: Subject) -> tuple[str, str]:
    """The possessive of `subject` in English and, as lemma, in French."""
    word = "her" if (subject.person, subject.gender) == (2, "f") else english.POSSESSIVES[subject.person]
    return word, french.POSSESSIVES[subject.person]


def phrase(
    determiner: str, noun: str, adjective: str = "", owner: Subject | None = None, *, plural: bool = False
) -> Phrase:
    """A noun phrase. determiner: a key of DETERMINERS, one of NUMBERS, or own (of `owner`)."""
    row = NOUNS[noun]
    words = f"{adjective} {english.pluralise(noun) if plural else noun}".strip()
    singular, several, lemma = DETERMINERS.get(determiner, (determiner, determiner, ""))
    if determiner == "own":
        assert owner is not None
        singular, lemma = own(owner)
        several = singular
    text = english.with_article(words) if (singular, plural) == ("a", False) else words
    if singular != "a":
        text = f"{several if plural else singular} {words}".strip()
    french_adjective = ADJECTIVES[adjective] if adjective else None
    lemma = lemma or NUMBERS[determiner]
    result = french.noun_phrase(lemma, row.french, row.gender, plural, french_adjective)
    if determiner in ("some", "mass"):
        result = french.attach("de", result)
    if determiner not in ("a", "some", "mass"):
        return Phrase(text, result, text, result)
    negated = french.noun_phrase("de", row.french, row.gender, plural, french_adjective)
    return Phrase(text, result, f"any {words}" if determiner == "some" else text, negated)


def objects(noun: str, determiners: str, owner: Subject | None = None) -> Iterator[Phrase]:
    """Noun phrases of one noun, bare and with its adjectives; + after it or after a determiner: plural."""
    name = noun.removesuffix("+")
    for determiner, adjective in product(determiners.split(), ("", *NOUNS[name].adjectives)):
        if adjective == "expensive" and determiner.startswith("own"):
            continue
        is_plural = noun.endswith("+") or determiner.endswith("+")
        yield phrase(determiner.removesuffix("+"), name, adjective, owner, plural=is_plural)


def prepositional(english_preposition: str, french_preposition: str, inner: Phrase) -> Phrase:
    """`near the station`, `près de la gare`."""
    return fixed(
        f"{english_preposition} {inner.english}", " ".join(french.attach(french_preposition, inner.french))
    )


def clause(
    subject: Subject,
    action: Action,
    tense: str,
    form: str,
    complement: Phrase = NOTHING,
    tail: Pair = ("", ""),
) -> Clause:
    """A clause of a full verb. form: plain, not, ask, never, anymore, often, always."""
    is_negative = form in FRENCH_NEGATIONS
    rest = complement.english_negated if form in ("not", "ask", "anymore") else complement.english
    extra = "anymore" if form == "anymore" else ""
    english_form = {"anymore": "not", "not": "not", "ask": "ask"}.get(form, "plain")
    adverb = form if form in ("never", "often", "always") else ""
    text = english.clause(
        subject.english,
        subject.person,
        action.english,
        tense,
        english_form,
        f"{rest} {extra} {tail[0]}",
        progressive=action.is_progressive,
        adverb=adverb,
    )
    french_tense = FRENCH_TENSES.get(tense, tense)
    if tense == "past" and action.french.infinitive == "avoir":
        french_tense = "imperfect"
    group = french.predicate(
        action.french,
        french_tense,
        subject.person,
        negation=FRENCH_NEGATIONS.get(form, ""),
        adverb=FRENCH_ADVERBS.get(form, ""),
        agreement=subject_agreement(subject, action),
    )
    if action.preposition and complement.french:
        following = french.attach(action.preposition, complement.french)
    else:
        following = complement.french_negated if is_negative else complement.french
    words = (subject.french, *group, *following, tail[1])
    return Clause(text, ("est-ce que", *words) if form == "ask" else words, form == "ask")


def subject_agreement(subject: Subject, action: Action) -> tuple[french.Gender, bool]:
    """What the participle agrees with: the subject for verbs of être, else nothing."""
    verb = action.french
    if verb.is_reflexive or verb.infinitive in french.WITH_ETRE:
        return subject.gender, subject.person >= 3
    return "m", False


def be_clause(
    subject: Subject, form: str, complement: Phrase, *, past: bool = False, verb: str = "être"
) -> Clause:
    """A clause of to be; form: plain, not or ask. `verb` is avoir where French says `avoir faim`."""
    text = english.with_be(subject.english, subject.person, form, complement.english, past)
    group = french.predicate(
        french.french_verb(verb),
        "imperfect" if past else "present",
        subject.person,
        negation=FRENCH_NEGATIONS.get(form, ""),
    )
    words = (subject.french, *group, *complement.french)
    return Clause(text, ("est-ce que", *words) if form == "ask" else words, form == "ask")


def sentence(*clauses: Clause) -> Pair:
    """The pair that the clauses make, read one after the other; the first says whether it is a question."""
    mark = "?" if clauses[0].is_question else "."
    words = [word for each in clauses for word in each.french]
    text = " ".join(each.english for each in clauses)
    return english.write_english(text, mark), french.write_french(words, mark)


def kept(share: float, *parts: str) -> bool:
    """Whether a combination is kept: the SHA-256 of its English ingredients falls in the lowest `share`.

    Translations of one English sentence (tu, vous) have the same ingredients, so they are kept together.
    Nobody asks about himself, except what he can do.
    """
    if "I" in parts and "ask" in parts and "can" not in parts:
        return False
    digest = hashlib.sha256("|".join(parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") < share * 2**32
