"""Phrasebook constructions of being and having: owning, moods, states, comparisons, belonging, age."""

from collections.abc import Iterator
from itertools import product

from passerelle.corpus import french_grammar as french
from passerelle.corpus.phrasebook_clauses import (
    FORMS,
    Clause,
    Pair,
    Phrase,
    be_clause,
    clause,
    fixed,
    kept,
    objects,
    phrase,
    sentence,
)
from passerelle.corpus.phrasebook_frames import (
    BUILDINGS,
    COMPARATIVES,
    COUNTED,
    MOODS,
    OWNED,
    PAST_MOODS,
    STATES,
)
from passerelle.corpus.phrasebook_nouns import NOUNS, listed
from passerelle.corpus.phrasebook_words import (
    ACTIONS,
    ADJECTIVES,
    EXPRESSIONS,
    NAMED,
    NUMBERS,
    PRONOUNS,
    SUBJECTS,
    Subject,
    subjects,
)

AGREEING = ("I", "I (woman)", "you", "you (several)", "he", "she", "we", "they", "they (women)", *NAMED)
NUMBER_KEYS = tuple(NUMBERS)
SEVERAL = listed(
    "door window box school museum shirt car house dog horse tree book story letter street garden hotel dress"
)


def mood(adjective: str, subject: Subject, english_adverb: str = "", french_adverb: str = "") -> Phrase:
    """An adjective said of a subject, agreed, with an adverb before it in both languages."""
    form = french.agree(ADJECTIVES[adjective], subject.gender, subject.person >= 3)
    word = adjective.partition(" (")[0]
    return fixed(f"{english_adverb} {word}".strip(), f"{french_adverb} {form}")


def owning(share: float) -> Iterator[Pair]:
    """`I don't have a dog.`, `She had an old clock.`, `We have three black cats.`"""
    have = ACTIONS["have"]
    for subject, noun in product(subjects(*PRONOUNS, *NAMED), OWNED):
        for thing, (tense, form) in product(
            objects(noun, "a"),
            (("present", "plain"), ("present", "not"), ("present", "ask"), ("past", "plain")),
        ):
            always = 1.0 if thing.english in ("a dog", "a car", "an umbrella") else share
            if kept(always, subject.english, thing.english, tense, form):
                yield sentence(clause(subject, have, tense, form, thing))
    for subject, noun, number in product(subjects(*PRONOUNS, *NAMED), COUNTED, NUMBER_KEYS[:7]):
        for adjective in ("", *NOUNS[noun].adjectives):
            several = phrase(number, noun, adjective, plural=True)
            if noun != subject.noun and kept(share / 4, subject.english, several.english):
                yield sentence(clause(subject, have, "present", "plain", several))


def moods(share: float) -> Iterator[Pair]:
    """`My sister is very proud.`, `Were they tired?`"""
    adverbs = (("", ""), ("very", "très"), ("too", "trop"))
    for subject, adjective, (word, french_word), form in product(subjects(*AGREEING), MOODS, adverbs, FORMS):
        if word and (adjective in ("ready", "alone", "sick") or form != "plain"):
            continue
        if word == "too" and adjective not in ("young", "old", "tired", "busy", "proud"):
            continue
        if kept(share, subject.english, word, adjective, form):
            yield sentence(be_clause(subject, form, mood(adjective, subject, word, french_word)))
    for subject, adjective, form in product(subjects(*AGREEING), PAST_MOODS, FORMS):
        if kept(share / 2, "past", subject.english, adjective, form):
            yield sentence(be_clause(subject, form, mood(adjective, subject), past=True))


def feelings(share: float) -> Iterator[Pair]:
    """`We're hungry.`, `She was scared.`, `He's afraid of dogs.`: French avoir faim, avoir peur."""
    for subject, (word, french_word), form in product(
        subjects(*PRONOUNS, *NAMED), EXPRESSIONS.items(), FORMS
    ):
        for past in (False, True):
            if kept(share, subject.english, word, form, str(past)):
                yield sentence(be_clause(subject, form, fixed(word, french_word), past=past, verb="avoir"))
    feared = [
        phrase("generic", noun, plural=True)
        for noun in ("dog", "horse", "mouse", "cow", "owl", "bird", "hospital")
    ]
    feared += [phrase("this", noun) for noun in ("dog", "man", "owl", "hero", "bird")]
    feared += [phrase("generic", "winter"), phrase("the", "sea"), phrase("the", "river")]
    for subject, thing, form in product(subjects(*PRONOUNS, *NAMED), feared, FORMS):
        if kept(share / 2, "afraid", subject.english, thing.english, form):
            fear = fixed(f"afraid of {thing.english}", " ".join(french.attach("peur de", thing.french)))
            yield sentence(be_clause(subject, form, fear, verb="avoir"))


def states(share: float) -> Iterator[Pair]:
    """`This house is very old.`, `The museums aren't open.`: an adjective said of things."""
    for adjective, nouns in STATES:
        for noun, determiner, plural in product(nouns.split(), ("the", "this"), (False, True)):
            if plural and noun not in SEVERAL:
                continue
            thing = _thing(determiner, noun, plural)
            for form, past, (word, french_word) in product(
                FORMS, (False, True), (("", ""), ("very", "très"), ("too", "trop"))
            ):
                is_graded = adjective not in ("open", "closed", "new (unused)") and form == "plain"
                if (word and not is_graded) or (
                    word == "too" and adjective in ("beautiful", "interesting", "quiet")
                ):
                    continue
                if kept(share, thing.english, adjective, form, str(past), word):
                    said = mood(adjective, thing, word, french_word)
                    yield sentence(be_clause(thing, form, said, past=past))


def _thing(determiner: str, noun: str, plural: bool = False) -> Subject:
    thing = phrase(determiner, noun, plural=plural)
    return Subject(thing.english, " ".join(thing.french), 5 if plural else 2, NOUNS[noun].gender)


def comparisons(share: float) -> Iterator[Pair]:
    """`Paul is taller than Marie.`, `This house is older than the church.`"""
    people = subjects(
        "he", "she", "Marie", "Paul", "Anne", "my brother", "my sister", "the teacher", "my mother"
    )
    beside = [
        *subjects("Marie", "Paul", "Anne", "my brother", "my sister", "the teacher"),
        Subject("me", "moi", 0, "m"),
        Subject("you", "toi", 1, "m"),
        Subject("you", "vous", 4, "m"),
        Subject("him", "lui", 2, "m"),
        Subject("us", "nous", 3, "m"),
        Subject("them", "eux", 5, "m"),
    ]
    for degree, french_adverb, adjective, nouns in COMPARATIVES:
        than = "as" if degree.startswith("as ") else "than"
        things = [
            (_thing(determiner, noun), _thing(other_determiner, other))
            for noun, other in product(nouns.split(), nouns.split())
            for determiner, other_determiner in (("the", "the"), ("this", "the"), ("the", "this"))
        ]
        for subject, standard in things or product(people, beside):
            is_same = subject.english.split()[-1] == standard.english.split()[-1]
            is_pronoun = standard.english == "him" and subject.english == "he"
            if is_same or is_pronoun or not kept(share, degree, subject.english, standard.english):
                continue
            form = french.agree(ADJECTIVES[adjective], subject.gender)
            rest = fixed(
                f"{degree} {than} {standard.english}", f"{french_adverb} {form} que {standard.french}"
            )
            yield sentence(be_clause(subject, "plain", rest))


def belonging(share: float) -> Iterator[Pair]:
    """`This is my sister's car.`, `This is an old clock.`, `I like the neighbor's garden.`"""
    owners = [
        ("Paul's", "Paul"),
        ("Marie's", "Marie"),
        ("Anne's", "Anne"),
        ("my brother's", "mon frère"),
        ("my sister's", "ma sœur"),
        ("the neighbor's", "le voisin"),
        ("the children's", "les enfants"),
        ("the teacher's", "le professeur"),
        ("my parents'", "mes parents"),
        ("the man's", "le homme"),
        ("the hero's", "le héros"),
    ]
    things = listed(
        "dog cat car house bicycle garden coat hat bag book computer phone umbrella watch school story"
    )
    for (owner, french_owner), noun in product(owners, things):
        bare = phrase("the", noun)
        words = (*bare.french, *french.attach("de", tuple(french_owner.split())))
        owned = Phrase(f"{owner} {noun}", words, f"{owner} {noun}", words)
        for form in FORMS:
            if kept(share, "this is", owned.english, form):
                yield this_is(owned, form)
        if kept(share, "where", owned.english):
            yield sentence(Clause(f"where is {owned.english}", ("où", "est", *words), True))
        for subject, key, form in product(subjects(*PRONOUNS), ("like", "see"), FORMS):
            if kept(share / 4, key, subject.english, owned.english, form):
                yield sentence(clause(subject, ACTIONS[key], "present", form, owned))
    shown = dict.fromkeys((*OWNED, *COUNTED, *BUILDINGS))
    for noun, form in product(shown, FORMS):
        for thing in objects(noun, "a") if NOUNS[noun].adjectives else ():
            if kept(share, "this is", thing.english, form):
                yield this_is(thing, form)
    for name, noun in product(("I", "you", "you (several)", "we"), dict.fromkeys((*OWNED, *COUNTED))):
        for thing, form in product(objects(noun, "own", SUBJECTS[name]), FORMS):
            if kept(share / 2, "this is", thing.english, form):
                yield this_is(thing, form)


def this_is(thing: Phrase, form: str) -> Pair:
    """`This is …`: C'est …, where negation leaves un and du as they are."""
    text = {"plain": "this is", "not": "this isn't", "ask": "is this"}[form]
    start = {"plain": ("ce", "est"), "not": ("ce", "ne", "est", "pas"), "ask": ("est-ce que", "ce", "est")}[
        form
    ]
    return sentence(Clause(f"{text} {thing.english}", (*start, *thing.french), form == "ask"))


def ages_and_hours() -> Iterator[Pair]:
    """`Paul is eleven years old.`, `It's eight o'clock.`"""
    for subject, number in product(
        subjects("I", "he", "she", "Paul", "Marie", "my brother", "my sister"), NUMBER_KEYS[3:]
    ):
        yield sentence(
            be_clause(subject, "plain", fixed(f"{number} years old", f"{NUMBERS[number]} ans"), verb="avoir")
        )
    for number, french_number in NUMBERS.items():
        if number != "twelve":
            yield sentence(Clause(f"it's {number} o'clock", ("il", "est", french_number, "heures")))
    yield sentence(Clause("it's noon", ("il", "est", "midi")))
