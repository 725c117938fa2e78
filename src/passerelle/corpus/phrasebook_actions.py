"""Phrasebook constructions around verbs with an object: statements, questions, orders, pronouns, tastes."""

from collections.abc import Iterator, Sequence
from itertools import product

from passerelle.corpus import english_grammar as english
from passerelle.corpus import french_grammar as french
from passerelle.corpus.phrasebook_clauses import (
    Clause,
    Pair,
    Phrase,
    clause,
    joined,
    kept,
    objects,
    phrase,
    prepositional,
    sentence,
)
from passerelle.corpus.phrasebook_frames import FRAMES, LIKED, LIKED_THINGS, MASS_FRAMES
from passerelle.corpus.phrasebook_nouns import listed
from passerelle.corpus.phrasebook_words import ACTIONS, NAMED, PRONOUNS, SUBJECTS, Action, Subject, subjects

TAILS = {
    "any": (("", ""),),
    "past": (("", ""), ("yesterday", "hier"), ("this morning", "ce matin")),
    "going": (("", ""), ("tomorrow", "demain"), ("this evening", "ce soir")),
    "future": (("", ""), ("tomorrow", "demain")),
}
GARMENTS = ("coat", "hat", "dress", "shirt", "scarf")
UNLIKELY = {("write", "old"), ("write", "French"), ("write", "English")}
FORMS = {"any": ("plain", "not", "ask"), "must": ("plain", "not"), "used": ("plain",)}
OWN_TASTES = ("dress", "hat", "garden", "house")
OBJECT_PRONOUNS = {
    "me": ("me", 0, "m"),
    "you": ("te", 1, "m"),
    "you (several)": ("vous", 4, "m"),
    "him": ("le", 2, "m"),
    "her": ("la", 2, "f"),
    "us": ("nous", 3, "m"),
    "them": ("les", 5, "m"),
}
UNORDERED = ("find", "lose", "see", "wear", "know", "need", "want")
ORDERS = {"you": ("", 1), "you (several)": ("", 4), "we": ("let's", 3)}


def as_habit(action: Action) -> Action:
    """The action with `he eats`, not `he is eating`, as its present."""
    return action._replace(is_progressive=False)


def suitable(determiners: str, noun: str, subject: Subject) -> str:
    """The determiners, without `own` where people would share one garment or a man would own a dress."""
    is_shared = noun in GARMENTS and subject.person in (3, 5)
    is_wrong = noun == "dress" and subject.person == 2 and subject.gender == "m"
    if not (is_shared or is_wrong):
        return determiners
    return " ".join(name for name in determiners.split() if name != "own")


def manners(tenses: Sequence[str]) -> Iterator[tuple[str, str, Pair]]:
    """The tenses, each with the forms and the words of time that it allows."""
    for tense in tenses:
        for form, tail in product(FORMS.get(tense, FORMS["any"]), TAILS.get(tense, TAILS["any"])):
            yield tense, form, tail


def frames(share: float) -> Iterator[Pair]:
    """`She is reading an old book.`, `Did they wash the car yesterday?`: every frame, thinned to `share`."""
    everyone = subjects(*PRONOUNS, *NAMED)
    for key, nouns, determiners, tenses in FRAMES:
        for noun, subject in product(nouns.split(), everyone):
            fitting = suitable(determiners, noun, subject)
            if noun == subject.noun or (key == "wear" and fitting != determiners):
                continue
            for thing in objects(noun, fitting, subject):
                is_unlikely = any((key, word) in UNLIKELY for word in thing.english.split())
                if is_unlikely or not kept(0.1, subject.english, key, thing.english):
                    continue
                for tense, form, tail in manners(tenses.split()):
                    if kept(10 * share, subject.english, key, thing.english, tense, form, tail[0]):
                        yield sentence(clause(subject, ACTIONS[key], tense, form, thing, tail))


def food_and_drink(share: float) -> Iterator[Pair]:
    """`He never eats meat.`, `Did you drink any milk?`"""
    forms = {"present": ("plain", "not", "ask", "never", "often", "anymore")}
    for key, nouns in MASS_FRAMES:
        tenses = ("present", "past", "going", "want", "can")
        for noun, subject, tense in product(nouns.split(), subjects(*PRONOUNS, *NAMED), tenses):
            determiner = "a" if noun.endswith("+") else "mass" if tense == "present" else "some"
            thing = phrase(determiner, noun.removesuffix("+"), plural=noun.endswith("+"))
            for form, tail in product(forms.get(tense, FORMS["any"]), TAILS.get(tense, TAILS["any"])):
                if kept(share, subject.english, key, thing.english, tense, form, tail[0]):
                    yield sentence(clause(subject, as_habit(ACTIONS[key]), tense, form, thing, tail))


def tastes(share: float) -> Iterator[Pair]:
    """`Does she like school?`, `I don't like this song.`"""
    forms = {"like": ("plain", "not", "ask"), "love": ("plain", "ask")}
    for subject, noun in product(subjects(*PRONOUNS, *NAMED), (*LIKED, *LIKED_THINGS)):
        if noun in LIKED:
            things = [phrase("generic", noun.removesuffix("+"), plural=noun.endswith("+"))]
        else:
            determiners = "the this own" if noun in OWN_TASTES else "the this"
            things = list(objects(noun, suitable(determiners, noun, subject), subject))
        always = 1.0 if noun == "school" else 3 * share if noun in LIKED else share
        for thing, (key, possible) in product(things, forms.items()):
            for form in possible:
                if noun != subject.noun and kept(always, subject.english, key, thing.english, form):
                    yield sentence(clause(subject, ACTIONS[key], "present", form, thing))


def giving(share: float) -> Iterator[Pair]:
    """`He gave the book to his sister.`"""
    gifts = listed("book letter apple key cake watch ball scarf")
    for subject, noun in product(subjects(*PRONOUNS, "Marie", "Paul", "the teacher"), gifts):
        receivers = [phrase("own", name, owner=subject) for name in ("sister", "brother", "mother", "friend")]
        receivers += [
            phrase("the", "child", plural=True),
            phrase("the", "neighbor"),
            phrase("the", "girl"),
            phrase("this", "man"),
            phrase("the", "hero"),
        ]
        for thing, receiver, tense in product(
            objects(noun, "a the this"), receivers, ("past", "going", "want")
        ):
            for form in ("plain", "not", "ask"):
                if kept(share, subject.english, thing.english, receiver.english, tense, form):
                    both = joined(thing, prepositional("to", "à", receiver))
                    yield sentence(clause(subject, ACTIONS["give"], tense, form, both))


def object_pronouns(share: float) -> Iterator[Pair]:
    """`I see her.`, `She didn't understand us.`, `He's going to help me.`"""
    keys = ("see", "know", "help", "look for", "wait for", "listen to", "understand", "find")
    for subject, key, name in product(
        subjects(*PRONOUNS, "Marie", "Paul", "my brother", "the children"), keys, OBJECT_PRONOUNS
    ):
        word, person, gender = OBJECT_PRONOUNS[name]
        tenses = {"know": ("present",), "find": ("past", "can"), "see": ("present", "past", "can")}
        if {person, subject.person} in ({0}, {1}, {3}, {4}, {0, 3}, {1, 4}):
            continue
        action = ACTIONS[key]
        for tense, form in product(
            tenses.get(key, ("present", "past", "going", "want", "can")), ("plain", "not", "ask")
        ):
            spoken = name.removesuffix(" (several)")
            if not kept(share, subject.english, key, spoken, tense, form):
                continue
            text = english.clause(
                subject.english,
                subject.person,
                action.english,
                tense,
                form,
                spoken,
                progressive=action.is_progressive,
            )
            agreement: tuple[french.Gender, bool] = ("f" if gender == "f" else "m", person >= 3)
            group = french.predicate(
                action.french,
                tense,
                subject.person,
                pronoun=word,
                agreement=agreement,
                negation="pas" if form == "not" else "",
            )
            words = (*(("est-ce que",) if form == "ask" else ()), subject.french, *group)
            yield sentence(Clause(text, words, form == "ask"))


def orders(share: float) -> Iterator[Pair]:
    """`Open the door.`, `Don't eat this apple.`, `Let's visit the castle.`"""
    for key, nouns, determiners, tenses in FRAMES:
        if key in UNORDERED or tenses == "present":
            continue
        for noun, (name, (prefix, person)), form in product(nouns.split(), ORDERS.items(), ("plain", "not")):
            if (form, key) == ("plain", "forget"):
                continue
            for thing in objects(noun, determiners, SUBJECTS[name]):
                said = thing.english_negated if form == "not" else thing.english
                text = f"{' '.join(ACTIONS[key].english)} {said}"
                if not kept(share, prefix, text, form):
                    continue
                text = text if form == "plain" else f"not {text}"
                yield sentence(_order(ACTIONS[key], prefix, person, thing, text))


def _order(action: Action, prefix: str, person: int, thing: Phrase, text: str) -> Clause:
    is_negative = text.startswith("not ")
    if is_negative and not prefix:
        text = f"don't {text.removeprefix('not ')}"
    group = french.predicate(action.french, "imperative", person, negation="pas" if is_negative else "")
    words = thing.french_negated if is_negative else thing.french
    if action.preposition:
        words = french.attach(action.preposition, thing.french)
    return Clause(f"{prefix} {text}", (*group, *words))
