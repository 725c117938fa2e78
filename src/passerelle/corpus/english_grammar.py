"""English as the phrasebook needs it: articles, plurals, verb forms, do-support, contractions.

Persons are numbered 0 to 5 as in `french_grammar`: I, you (one), he/she, we, you (several), they.
"""

from typing import NamedTuple

_PLURALS = "child children, man men, woman women, mouse mice, fish fish"
_PASTS = """
buy bought, choose chose, come came, drink drank, eat ate, fall fell, find found, forget forgot, get got,
give gave, go went, have had, know knew, leave left, lose lost, read read, see saw, sell sold, sing sang,
sleep slept, speak spoke, swim swam, take took, think thought, understand understood, wear wore, write wrote
"""
IRREGULAR_PLURALS = dict(pair.split() for pair in _PLURALS.split(","))
IRREGULAR_PASTS = dict(pair.split() for pair in _PASTS.split(","))
DOUBLED = frozenset({"forget", "get", "swim"})
HELPERS = {"want": "want to", "like": "like to"}
MODALS = {"future": "will", "can": "can", "able": "can", "must": "must"}
CONTRACTIONS = {"I": "I'm", "you": "you're", "he": "he's", "she": "she's", "we": "we're", "they": "they're"}
POSSESSIVES = ("my", "your", "his", "our", "your", "their")


class EnglishVerb(NamedTuple):
    """A verb and what follows it unchanged: `look` and `for`."""

    base: str
    particle: str = ""


def english_verb(text: str) -> EnglishVerb:
    """`look for` -> the verb `look` with the particle `for`."""
    base, _, particle = text.partition(" ")
    return EnglishVerb(base, particle)


def write_english(text: str, mark: str = ".") -> str:
    """The sentence: single spaces, first letter capital, `mark` at its end."""
    text = " ".join(text.split())
    return text[0].upper() + text[1:] + mark


def with_article(words: str) -> str:
    """`words` after a or an."""
    return f"an {words}" if words[0].lower() in "aeiou" else f"a {words}"


def pluralise(noun: str) -> str:
    """The plural of a noun or of a compound by its last word."""
    if noun in IRREGULAR_PLURALS:
        return IRREGULAR_PLURALS[noun]
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def third_person(base: str) -> str:
    """eat -> eats, watch -> watches, go -> goes, have -> has."""
    if base == "have":
        return "has"
    return f"{base}es" if base == "go" else pluralise(base)


def ing_form(base: str) -> str:
    """eat -> eating, write -> writing, swim -> swimming."""
    if base in DOUBLED:
        return f"{base}{base[-1]}ing"
    return f"{base[:-1]}ing" if base.endswith("e") and not base.endswith("ee") else f"{base}ing"


def past_form(base: str) -> str:
    """eat -> ate, like -> liked, study -> studied."""
    if base in IRREGULAR_PASTS:
        return IRREGULAR_PASTS[base]
    if base.endswith("e"):
        return f"{base}d"
    return f"{base[:-1]}ied" if base.endswith("y") and base[-2] not in "aeiou" else f"{base}ed"


def with_be(subject: str, person: int, form: str, rest: str, past: bool = False) -> str:
    """A clause of to be and `rest`; form: plain, not or ask. Pronouns contract in the present."""
    present = {0: "am", 2: "is"}.get(person, "are")
    be = present if not past else "was" if person in (0, 2) else "were"
    if form == "ask":
        return f"{be} {subject} {rest}"
    if form == "not":
        return f"I'm not {rest}" if be == "am" else f"{subject} {be}n't {rest}"
    if not past and subject in CONTRACTIONS:
        return f"{CONTRACTIONS[subject]} {rest}"
    return f"{subject} {be} {rest}"


def with_do(
    subject: str, person: int, verb: EnglishVerb, form: str, rest: str, past: bool = False, adverb: str = ""
) -> str:
    """A clause of a full verb in the simple present or past, with do where form is not or ask."""
    does = "did" if past else "does" if person == 2 else "do"
    if form == "ask":
        return f"{does} {subject} {verb.base} {verb.particle} {rest}"
    if form == "not":
        return f"{subject} {does}n't {verb.base} {verb.particle} {rest}"
    finite = past_form(verb.base) if past else third_person(verb.base) if person == 2 else verb.base
    return f"{subject} {adverb} {finite} {verb.particle} {rest}"


def with_modal(subject: str, modal: str, form: str, rest: str) -> str:
    """A clause of will, can or must and `rest`; a pronoun contracts with will."""
    if form == "ask":
        return f"{modal} {subject} {rest}"
    if form == "not":
        negative = {"will": "won't", "can": "can't", "must": "must not"}[modal]
        return f"{subject} {negative} {rest}"
    if modal == "will" and subject in CONTRACTIONS:
        return f"{subject}'ll {rest}"
    return f"{subject} {modal} {rest}"


def clause(
    subject: str,
    person: int,
    verb: EnglishVerb,
    tense: str,
    form: str,
    rest: str,
    *,
    progressive: bool = False,
    adverb: str = "",
) -> str:
    """Subject, verb and `rest` in a tense: present, past, going, future, used, want, like, can, able or must.

    form: plain, not or ask. progressive chooses `is eating` over `eats` in the present.
    """
    bare = f"{verb.base} {verb.particle} {rest}"
    if tense == "going":
        return with_be(subject, person, form, f"going to {bare}")
    if tense in MODALS:
        return with_modal(subject, MODALS[tense], form, bare)
    if tense in HELPERS:
        return with_do(subject, person, english_verb(HELPERS[tense]), form, bare)
    if tense == "used":
        return f"{subject} used to {bare}"
    if tense == "present" and progressive:
        return with_be(subject, person, form, f"{ing_form(verb.base)} {verb.particle} {rest}")
    return with_do(subject, person, verb, form, rest, tense == "past", adverb)
