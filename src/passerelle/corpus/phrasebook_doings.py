"""Phrasebook constructions without an object: coming and going, habits, games, thoughts and reasons."""

from collections.abc import Iterator
from itertools import product

from passerelle.corpus import french_grammar as french
from passerelle.corpus.phrasebook_actions import TAILS, as_habit
from passerelle.corpus.phrasebook_clauses import (
    FORMS,
    Clause,
    Pair,
    be_clause,
    clause,
    fixed,
    kept,
    phrase,
    prepositional,
    sentence,
)
from passerelle.corpus.phrasebook_frames import (
    CAUSES,
    GAMES,
    HABITS,
    HOMES,
    LANGUAGES,
    MOODS,
    NOW,
    PLACES,
    WHEN,
)
from passerelle.corpus.phrasebook_states import AGREEING, mood
from passerelle.corpus.phrasebook_words import ACTIONS, NAMED, NUMBERS, PRONOUNS, SUBJECTS, Subject, subjects

EVERYONE = (*PRONOUNS, *NAMED)
ODD_HABITS = (("swim", "in winter"), ("walk", "in winter"))
NOT_DONE = {
    "swim": ("in the", "under"),
    "walk": ("in the k", "under"),
    "sleep": ("with",),
    "work": ("under",),
}
THINKERS = ("I", "you", "you (several)", "he", "she", "we", "Marie", "Paul", "my mother")


def habits(share: float) -> Iterator[Pair]:
    """`He sings every day.`, `She is sleeping in the kitchen.`, `We used to swim in summer.`"""
    keys = ("work", "sleep", "sing", "dance", "swim", "walk")
    for subject, key, (tail, french_tail) in product(subjects(*EVERYONE), keys, HABITS):
        if (key, tail) in ODD_HABITS or (key == "sleep" and tail != "in the morning"):
            continue
        for tense, form in (("present", "plain"), ("present", "not"), ("present", "ask"), ("used", "plain")):
            if kept(share, subject.english, key, tail, tense, form):
                yield sentence(clause(subject, as_habit(ACTIONS[key]), tense, form, tail=(tail, french_tail)))
    for subject, key, form in product(subjects(*EVERYONE), keys, ("never", "often", "always", "anymore")):
        if kept(2 * share, subject.english, key, form):
            yield sentence(clause(subject, as_habit(ACTIONS[key]), "present", form))
    for subject, key, (tail, french_tail), form in product(subjects(*EVERYONE), keys, NOW, FORMS):
        is_odd = tail.startswith(NOT_DONE.get(key, ())) or subject.english in tail
        if not is_odd and kept(share, subject.english, key, tail, form, "now"):
            yield sentence(clause(subject, ACTIONS[key], "present", form, tail=(tail, french_tail)))
    for subject, key, tense, form in product(
        subjects(*EVERYONE), keys, ("want", "can", "must", "like", "going"), FORMS
    ):
        if tense == "can" and key in ("swim", "dance", "sing"):
            tense = "able"
        if (tense, form) != ("must", "ask") and kept(2 * share, subject.english, key, tense, form):
            yield sentence(clause(subject, ACTIONS[key], tense, form))


def journeys(share: float) -> Iterator[Pair]:
    """`They're going to the market.`, `She came back from the beach yesterday.`, `My sister arrived.`"""
    for subject, (noun, _, to, away) in product(subjects(*AGREEING), PLACES):
        there = fixed(to, " ".join(french.attach("à", phrase("the", noun).french)))
        back = fixed(away, " ".join(french.attach("de", phrase("the", noun).french)))
        for tense, form in product(("present", "past", "future", "want", "can", "must", "like"), FORMS):
            if subject.english in ("I", "they") and tense != "past" and subject.gender == "f":
                continue
            for tail in TAILS.get(tense, TAILS["any"]):
                if (tense, form) != ("must", "ask") and kept(
                    share, subject.english, to, tense, form, tail[0]
                ):
                    yield sentence(clause(subject, ACTIONS["go"], tense, form, there, tail))
        for (key, tense), form in product(
            (("come", "present"), ("come back", "present"), ("come back", "past")), FORMS
        ):
            if subject.english in ("I", "they") and tense != "past" and subject.gender == "f":
                continue
            if kept(share, subject.english, key, away, tense, form):
                yield sentence(clause(subject, ACTIONS[key], tense, form, back))
    for subject, key, tail, form in product(
        subjects(*AGREEING), ("leave", "arrive", "come back", "fall"), TAILS["past"], FORMS
    ):
        if kept(4 * share, subject.english, key, tail[0], form):
            yield sentence(clause(subject, ACTIONS[key], "past", form, tail=tail))


def plans(share: float) -> Iterator[Pair]:
    """`We're leaving on Monday.`, `I'll stay here tomorrow.`, `Is he going to come with Paul?`"""
    for subject, key, (tail, french_tail), tense, form in product(
        subjects(*EVERYONE),
        ("leave", "arrive", "come", "stay"),
        WHEN,
        ("present", "going", "future", "want", "can"),
        FORMS,
    ):
        if (key == "stay" and (tense == "present" or tail.startswith("at"))) or subject.english in tail:
            continue
        if kept(share, subject.english, key, tail, tense, form):
            yield sentence(clause(subject, ACTIONS[key], tense, form, tail=(tail, french_tail)))


def homes(share: float) -> Iterator[Pair]:
    """`Do you live near the station?`, `We used to live in France.`"""
    for subject, (home, french_home), (tense, form) in product(
        subjects(*EVERYONE),
        HOMES,
        (("present", "plain"), ("present", "not"), ("present", "ask"), ("used", "plain"), ("want", "plain")),
    ):
        if kept(share, subject.english, home, tense, form):
            yield sentence(clause(subject, ACTIONS["live"], tense, form, fixed(home, french_home)))


def games_and_languages(share: float) -> Iterator[Pair]:
    """`Paul plays the guitar.`, `I can't speak English.`"""
    cases = [("present", form) for form in ("plain", "not", "ask", "never", "often", "anymore")]
    cases += [(tense, form) for tense in ("past", "want", "able", "like", "going") for form in FORMS] + [
        ("used", "plain")
    ]
    for subject, (game, french_game), (tense, form) in product(subjects(*EVERYONE), GAMES, cases):
        if kept(share, subject.english, game, tense, form):
            yield sentence(clause(subject, as_habit(ACTIONS["play"]), tense, form, fixed(game, french_game)))
    for subject, (language, word), tense, form in product(
        subjects(*EVERYONE), LANGUAGES.items(), ("present", "able", "want", "like"), FORMS
    ):
        if kept(3 * share, subject.english, language, tense, form):
            yield sentence(clause(subject, ACTIONS["speak"], tense, form, fixed(language, word)))


def days(share: float) -> Iterator[Pair]:
    """`I get up at seven o'clock.`, `She went to bed at ten o'clock.`"""
    hours = {"get up": ("six", "seven", "eight", "nine"), "go to bed": ("eight", "nine", "ten", "eleven")}
    for subject, key, tense, form in product(
        subjects(*AGREEING), hours, ("present", "past", "going", "want", "must"), FORMS
    ):
        if tense != "past" and subject.english in ("I", "they") and subject.gender == "f":
            continue
        for hour in hours[key]:
            tail = (f"at {hour} o'clock", f"à {NUMBERS[hour]} heures")
            if (tense, form) != ("must", "ask") and kept(share, subject.english, key, hour, tense, form):
                yield sentence(clause(subject, ACTIONS[key], tense, form, tail=tail))


def thoughts(share: float) -> Iterator[Pair]:
    """`I think that she's sick.`, `He doesn't know that we're ready.`"""
    said = [
        be_clause(subject, form, mood(adjective, subject))
        for subject, adjective, form in product(
            subjects("he", "she", "we", "they", "Marie", "Paul", "my brother", "my sister", "the children"),
            MOODS,
            ("plain", "not"),
        )
    ]
    wished = [
        clause(subject, ACTIONS[key], "going", "plain", tail=tail)
        for subject, key, tail in product(
            subjects("he", "she", "they", "Anne", "Paul", "my sister"),
            ("come", "stay", "leave", "come back"),
            TAILS["going"],
        )
    ]
    for thinker, (key, forms) in product(
        subjects(*THINKERS), (("think", ("plain", "ask")), ("know (that)", FORMS), ("hope", ("plain",)))
    ):
        for form, thought in product(forms, wished if key == "hope" else said):
            if kept(share if key != "hope" else 3 * share, thinker.english, key, form, thought.english):
                head = clause(thinker, ACTIONS[key], "present", form)
                yield sentence(head, Clause(f"that {thought.english}", ("que", *thought.french)))


def reasons(share: float) -> Iterator[Pair]:
    """`Marie is sad because she lost her key.`"""
    for subject, (adjective, tense, form, key, nouns) in product(subjects(*AGREEING), CAUSES):
        again = _as_pronoun(subject)
        for noun in nouns.split() or [""]:
            determiner = "the" if key == "visit" else "own"
            thing = phrase(determiner, noun, owner=again) if noun else fixed("", "")
            if not kept(share, "because", subject.english, adjective, key, noun):
                continue
            cause = clause(again, ACTIONS[key], tense, form, thing)
            head = be_clause(subject, "plain", mood(adjective, subject))
            yield sentence(head, Clause(f"because {cause.english}", ("parce que", *cause.french)))


def _as_pronoun(subject: Subject) -> Subject:
    """The pronoun that takes up a third person: he, she or they; any other subject itself."""
    if subject.person == 2:
        return SUBJECTS["she" if subject.gender == "f" else "he"]
    if subject.person == 5:
        return SUBJECTS["they (women)" if subject.gender == "f" else "they"]
    return subject


def animals_asleep(share: float) -> Iterator[Pair]:
    """`The cat is sleeping under the table.`, `The dog is sleeping behind the hotel.`"""
    spots = (
        ("under", "sous", "table bed tree chair"),
        ("on", "sur", "bed chair"),
        ("in", "dans", "house garden kitchen box"),
        ("next to", "à côté de", "door window tree hotel river"),
        ("behind", "derrière", "house church door"),
    )
    for animal, (word, french_word, nouns), form in product(
        ("dog", "cat", "rabbit", "hedgehog"), spots, FORMS
    ):
        for noun, determiner in product(nouns.split(), ("the", "this")):
            thing = phrase(determiner, animal)
            subject = Subject(thing.english, " ".join(thing.french), 2, "m")
            spot = prepositional(word, french_word, phrase("the", noun))
            if kept(share, thing.english, spot.english, form):
                yield sentence(clause(subject, ACTIONS["sleep"], "present", form, spot))
