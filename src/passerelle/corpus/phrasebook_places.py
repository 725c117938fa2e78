"""Phrasebook constructions of places: where people and buildings are, what there is where."""

from collections.abc import Iterator
from itertools import product

from passerelle.corpus import french_grammar as french
from passerelle.corpus.phrasebook_clauses import (
    FORMS,
    Clause,
    Pair,
    Phrase,
    be_clause,
    fixed,
    kept,
    objects,
    phrase,
    prepositional,
    sentence,
)
from passerelle.corpus.phrasebook_frames import AROUND, BUILDINGS, INDOORS, OUTDOORS, PLACES
from passerelle.corpus.phrasebook_nouns import NOUNS, listed
from passerelle.corpus.phrasebook_words import NAMED, PRONOUNS, Subject, subjects


def whereabouts(share: float) -> Iterator[Pair]:
    """`Marie is at the hospital.`, `The hotel is near the station.`, `Were you in the garden?`"""
    spots = [fixed(at, " ".join(french.attach("à", phrase("the", noun).french))) for noun, at, *_ in PLACES]
    spots += [prepositional("in", "dans", place) for noun in INDOORS for place in objects(noun, "the this")]
    for subject, spot, form, past in product(subjects(*PRONOUNS, *NAMED), spots, FORMS, (False, True)):
        if kept(share, subject.english, spot.english, form, str(past)):
            yield sentence(be_clause(subject, form, spot, past=past))
    for noun, mark, (preposition, french_preposition), form in product(
        (*BUILDINGS, "bridge"), BUILDINGS, AROUND, FORMS
    ):
        if noun != mark and kept(share / 2, noun, mark, preposition, form):
            thing = phrase("the", noun)
            subject = Subject(thing.english, " ".join(thing.french), 2, NOUNS[noun].gender)
            yield sentence(
                be_clause(subject, form, prepositional(preposition, french_preposition, phrase("the", mark)))
            )


def presence(share: float) -> Iterator[Pair]:
    """`There is a cat under the table.`, `There isn't any bread on the table.`"""
    indoors = _spots(
        (
            ("on", "sur", "table chair bed"),
            ("under", "sous", "table chair bed tree"),
            ("in", "dans", "kitchen garden box bag house"),
        )
    )
    kitchen = _spots((("on", "sur", "table"), ("in", "dans", "kitchen house bag")))
    outdoors = [
        prepositional(word, french_word, phrase("the", mark))
        for mark in (*BUILDINGS, *OUTDOORS)
        for word, french_word in AROUND[: 2 if mark in OUTDOORS else None]
    ]
    for noun, determiner in product(listed("cat mouse ball book key letter hat"), ("a", "a+")):
        for thing, spot, form in product(objects(noun, determiner), indoors, FORMS):
            if kept(share, thing.english, spot.english, form):
                yield there_is(thing, spot, form, determiner == "a+")
    for noun, spot, form in product(
        ("bread", "cheese", "water", "milk", "chocolate", "honey"), kitchen, FORMS
    ):
        if kept(5 * share, noun, spot.english, form):
            yield there_is(phrase("some", noun), spot, form)
    for noun, spot, form in product((*BUILDINGS, "bridge"), outdoors, FORMS):
        for thing in objects(noun, "a"):
            if noun not in spot.english and kept(share / 4, thing.english, spot.english, form):
                yield there_is(thing, spot, form)


def _spots(table: tuple[tuple[str, str, str], ...]) -> list[Phrase]:
    return [
        prepositional(word, french_word, phrase("the", noun))
        for word, french_word, nouns in table
        for noun in nouns.split()
    ]


def there_is(thing: Phrase, spot: Phrase, form: str, plural: bool = False) -> Pair:
    """`There is …`, `There isn't …`, `Is there …?`: il y a."""
    be = "are" if plural else "is"
    words = ("il", "y", "a", *thing.french, *spot.french)
    if form == "ask":
        text = f"{be} there {thing.english_negated} {spot.english}"
        return sentence(Clause(text, ("est-ce que", *words), True))
    if form == "not":
        words = ("il", "ne", "y", "a", "pas", *thing.french_negated, *spot.french)
        return sentence(Clause(f"there {be}n't {thing.english_negated} {spot.english}", words))
    return sentence(Clause(f"there {be} {thing.english} {spot.english}", words))
