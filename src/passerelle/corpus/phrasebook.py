"""The bundled synthetic corpus: English-French pairs from a small grammar, and idioms written by hand."""

from collections.abc import Iterator
from importlib.resources import files

from passerelle.corpus import phrasebook_actions as actions
from passerelle.corpus import phrasebook_doings as doings
from passerelle.corpus import phrasebook_places as places
from passerelle.corpus import phrasebook_questions as questions
from passerelle.corpus import phrasebook_states as states
from passerelle.corpus.phrasebook_clauses import Pair

IDIOMS = "phrasebook_idioms.tsv"


def constructions() -> dict[str, Iterator[Pair]]:
    """The grammar's constructions by name; each number is the share of a large product that is kept."""
    return {
        "owning": states.owning(0.04),
        "frames": actions.frames(0.0026),
        "food_and_drink": actions.food_and_drink(0.04),
        "tastes": actions.tastes(0.02),
        "giving": actions.giving(0.0025),
        "object_pronouns": actions.object_pronouns(0.06),
        "orders": actions.orders(0.02),
        "what": questions.what(0.2),
        "which": questions.which(0.12),
        "who": questions.who(0.035),
        "how_many": questions.how_many(0.15),
        "where_and_when": questions.where_and_when(0.35),
        "where_is": questions.where_is(0.1),
        "moods": states.moods(0.35),
        "feelings": states.feelings(0.2),
        "states": states.states(0.12),
        "whereabouts": places.whereabouts(0.035),
        "presence": places.presence(0.055),
        "comparisons": states.comparisons(0.2),
        "belonging": states.belonging(0.09),
        "ages_and_hours": states.ages_and_hours(),
        "habits": doings.habits(0.075),
        "journeys": doings.journeys(0.045),
        "plans": doings.plans(0.07),
        "homes": doings.homes(0.14),
        "games_and_languages": doings.games_and_languages(0.05),
        "days": doings.days(0.08),
        "thoughts": doings.thoughts(0.035),
        "reasons": doings.reasons(0.3),
        "animals_asleep": doings.animals_asleep(0.25),
    }


def idioms() -> list[Pair]:
    """The pairs written by hand, in the order of their file."""
    text = files("passerelle.corpus").joinpath(IDIOMS).read_text(encoding="utf-8")
    pairs = []
    for line in text.splitlines():
        english, _, french = line.partition("\t")
        pairs.append((english, french))
    return pairs


def phrasebook_pairs() -> list[Pair]:
    """All pairs (English, French), construction by construction, then the idioms; no pair twice."""
    generated = (pair for pairs in constructions().values() for pair in pairs)
    return list(dict.fromkeys([*generated, *idioms()]))
