"""Phrasebook constructions that ask with a question word: what, which, who, how many, where, when, why."""

from collections.abc import Iterator
from itertools import product

from passerelle.corpus import english_grammar as english
from passerelle.corpus import french_grammar as french
from passerelle.corpus.french_grammar import Words
from passerelle.corpus.phrasebook_actions import as_habit, suitable
from passerelle.corpus.phrasebook_clauses import (
    Clause,
    Pair,
    be_clause,
    clause,
    fixed,
    kept,
    objects,
    phrase,
    sentence,
)
from passerelle.corpus.phrasebook_frames import BUILDINGS, COUNTED, FRAMES, OUTDOORS
from passerelle.corpus.phrasebook_nouns import NOUNS, listed
from passerelle.corpus.phrasebook_words import ACTIONS, ADJECTIVES, NAMED, PRONOUNS, Subject, subjects

ASKED = (*PRONOUNS[1:], *NAMED)
WHO = Subject("who", "qui", 2, "m")


def asked(english_word: str, french_word: str, question: Clause) -> Pair:
    """The pair of a yes-or-no question behind a question word; que joins est-ce que as qu'est-ce que."""
    words: Words = (french_word, *question.french)
    return sentence(Clause(f"{english_word} {question.english}", words, True))


def what(share: float) -> Iterator[Pair]:
    """`What are you reading?`, `What did she buy?`"""
    keys = (
        "read",
        "write",
        "buy",
        "sell",
        "look for",
        "eat",
        "drink",
        "wear",
        "watch",
        "wash",
        "repair",
        "choose",
        "want",
        "lose",
        "forget",
        "find",
    )
    for subject, key in product(subjects(*ASKED), keys):
        tenses = {"want": ("present",), "lose": ("past",), "forget": ("past",), "find": ("past",)}
        for tense in tenses.get(key, ("present", "past", "going", "want")):
            if kept(share, "what", subject.english, key, tense):
                yield asked("what", "que", clause(subject, ACTIONS[key], tense, "ask"))


def which(share: float) -> Iterator[Pair]:
    """`Which dress is she choosing?`, `Which shoes do you want?`"""
    for key, nouns, determiners, tenses in FRAMES:
        if (
            "present" not in tenses
            or ACTIONS[key].preposition
            or determiners.startswith("own")
            or key == "help"
        ):
            continue
        is_plural = "+" in determiners.split()[0]
        for noun, subject in product(nouns.split(), subjects(*ASKED[:10])):
            row = NOUNS[noun]
            head = english.pluralise(noun) if is_plural else noun
            if row.english == subject.noun or not kept(share, "which", subject.english, key, head):
                continue
            which_one = french.noun_phrase("quel", row.french, row.gender, is_plural)
            yield asked(f"which {head}", " ".join(which_one), clause(subject, ACTIONS[key], "present", "ask"))


def who(share: float) -> Iterator[Pair]:
    """`Who is reading this book?`, `Who lost the key?`"""
    for key, nouns, determiners, tenses in FRAMES:
        for noun, tense in product(nouns.split(), tenses.split()):
            chosen = " ".join(name for name in determiners.split() if name.startswith(("a", "the", "this")))
            for thing in objects(noun, chosen):
                if tense in ("present", "past", "want", "can") and kept(
                    share, "who", key, thing.english, tense
                ):
                    statement = clause(WHO, ACTIONS[key], tense, "plain", thing)
                    yield sentence(statement._replace(is_question=True))


def how_many(share: float) -> Iterator[Pair]:
    """`How many horses does she have?`"""
    for subject, noun, key in product(subjects(*ASKED), COUNTED, ("have", "want", "see")):
        is_odd = noun in ("brother", "sister", "child", "shirt", "key") and key != "have"
        if is_odd or noun == subject.noun or not kept(share, "how many", subject.english, noun, key):
            continue
        several = phrase("a", noun, plural=True)
        yield asked(
            f"how many {several.english}",
            " ".join(("combien", *several.french_negated)),
            clause(subject, ACTIONS[key], "present", "ask"),
        )


def where_and_when(share: float) -> Iterator[Pair]:
    """`Where does he live?`, `When are you leaving?`, `Why is she sad?`"""
    questions = [
        ("where", "où", "live", "present"),
        ("where", "où", "work", "present"),
        ("where", "où", "go", "present"),
        ("where", "où", "go", "past"),
        ("where", "où", "sleep", "past"),
        ("where", "où", "go", "want"),
        ("when", "quand", "leave", "present"),
        ("when", "quand", "arrive", "past"),
        ("when", "quand", "leave", "past"),
        ("when", "quand", "come back", "going"),
        ("why", "pourquoi", "leave", "past"),
        ("why", "pourquoi", "work", "present"),
        ("why", "pourquoi", "leave", "want"),
        ("why", "pourquoi", "come", "past"),
    ]
    for subject, (word, french_word, key, tense) in product(subjects(*ASKED), questions):
        if kept(share, word, subject.english, key, tense):
            habit = as_habit(ACTIONS[key]) if key in ("live", "work") else ACTIONS[key]
            yield asked(word, french_word, clause(subject, habit, tense, "ask"))
    for subject, mood in product(subjects(*ASKED), listed("happy sad tired alone worried proud busy")):
        if kept(share / 2, "why", subject.english, mood):
            form = french.agree(ADJECTIVES[mood], subject.gender, subject.person >= 3)
            yield asked("why", "pourquoi", be_clause(subject, "ask", fixed(mood, form)))


def where_is(share: float) -> Iterator[Pair]:
    """`Where is the library?`, `Where are your keys?`"""
    for noun in (*BUILDINGS, *OUTDOORS):
        for place in objects(noun, "the"):
            yield sentence(Clause(f"where is {place.english}", ("où", "est", *place.french), True))
    for owner, noun in product(subjects(*PRONOUNS), listed("key bag umbrella hat phone scarf watch book")):
        for thing in objects(noun, suitable("own", noun, owner), owner):
            if kept(3 * share, "where", thing.english):
                yield sentence(Clause(f"where is {thing.english}", ("où", "est", *thing.french), True))
    for owner, noun in product(subjects(*PRONOUNS), listed("key shoe book")):
        for thing in objects(noun, "own+", owner):
            if kept(3 * share, "where", thing.english):
                yield sentence(Clause(f"where are {thing.english}", ("où", "sont", *thing.french), True))
