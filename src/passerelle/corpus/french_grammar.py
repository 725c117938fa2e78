"""French as the phrasebook needs it: elision, contraction, agreement, conjugation, negation.

A piece of French is a tuple of words in their full form ("le", "école"); elision happens once, in
`write_french`, when all neighbours are known. Persons are numbered 0 to 5: je, tu, il or elle, nous, vous,
ils or elles.
"""

from collections.abc import Iterable
from functools import cache
from typing import Literal, NamedTuple

Words = tuple[str, ...]
Gender = Literal["m", "f"]

NARROW_NO_BREAK_SPACE = "\u202f"
ELIDED = frozenset({"je", "me", "te", "se", "le", "la", "ne", "de", "que", "ce"})
ASPIRATED = ("hamac", "haricot", "harpe", "hérisson", "héros", "hibou", "hockey", "huit", "onze")
DETERMINERS = {
    "un": ("un", "une", "des"),
    "le": ("le", "la", "les"),
    "ce": ("ce", "cette", "ces"),
    "mon": ("mon", "ma", "mes"),
    "ton": ("ton", "ta", "tes"),
    "son": ("son", "sa", "ses"),
    "notre": ("notre", "notre", "nos"),
    "votre": ("votre", "votre", "vos"),
    "leur": ("leur", "leur", "leurs"),
    "quel": ("quel", "quelle", "quels"),
}
POSSESSIVES = ("mon", "ton", "son", "notre", "votre", "leur")
REFLEXIVES = ("me", "te", "se", "nous", "vous", "se")
HELPERS = {
    "going": "aller",
    "want": "vouloir",
    "can": "pouvoir",
    "must": "devoir",
    "like": "aimer",
    "able": "savoir",
}
FUTURE_ENDINGS = ("ai", "as", "a", "ons", "ez", "ont")
IMPERFECT_ENDINGS = ("ais", "ais", "ait", "ions", "iez", "aient")
WITH_ETRE = frozenset({"aller", "arriver", "partir", "rentrer", "rester", "tomber", "venir"})

# infinitive: present, participle, future stem
IRREGULAR = {
    "aller": ("vais vas va allons allez vont", "allé", "ir"),
    "avoir": ("ai as a avons avez ont", "eu", "aur"),
    "boire": ("bois bois boit buvons buvez boivent", "bu", "boir"),
    "comprendre": ("comprends comprends comprend comprenons comprenez comprennent", "compris", "comprendr"),
    "connaître": ("connais connais connaît connaissons connaissez connaissent", "connu", "connaîtr"),
    "devoir": ("dois dois doit devons devez doivent", "dû", "devr"),
    "dormir": ("dors dors dort dormons dormez dorment", "dormi", "dormir"),
    "écrire": ("écris écris écrit écrivons écrivez écrivent", "écrit", "écrir"),
    "être": ("suis es est sommes êtes sont", "été", "ser"),
    "lire": ("lis lis lit lisons lisez lisent", "lu", "lir"),
    "ouvrir": ("ouvre ouvres ouvre ouvrons ouvrez ouvrent", "ouvert", "ouvrir"),
    "partir": ("pars pars part partons partez partent", "parti", "partir"),
    "pouvoir": ("peux peux peut pouvons pouvez peuvent", "pu", "pourr"),
    "prendre": ("prends prends prend prenons prenez prennent", "pris", "prendr"),
    "savoir": ("sais sais sait savons savez savent", "su", "saur"),
    "venir": ("viens viens vient venons venez viennent", "venu", "viendr"),
    "voir": ("vois vois voit voyons voyez voient", "vu", "verr"),
    "vouloir": ("veux veux veut voulons voulez veulent", "voulu", "voudr"),
}


class FrenchAdjective(NamedTuple):
    """Forms of an adjective; `before_vowel` replaces the masculine singular before a vowel sound."""

    masculine: str
    feminine: str
    precedes: bool = False
    before_vowel: str = ""


class FrenchVerb(NamedTuple):
    """What conjugation needs of one verb; `present` has six persons."""

    infinitive: str
    present: Words
    participle: str
    future_stem: str
    is_reflexive: bool = False


def has_vowel_sound(word: str) -> bool:
    """Whether `word` begins with a vowel sound: a mute h does, an aspirated one does not."""
    word = word.lower()
    if word.startswith(ASPIRATED):
        return False
    return word[0] in "aàâeéèêiîoôuœh" or word == "y"


def write_french(words: Iterable[str], mark: str = ".") -> str:
    """The sentence: words elided and joined, first letter capital, `mark` spaced as French wants it."""
    flat = " ".join(words).split()
    text = ""
    for word, following in zip(flat, [*flat[1:], ""], strict=True):
        is_elided = word.lower() in ELIDED and following != "" and has_vowel_sound(following)
        text += f"{word[:-1]}'" if is_elided else f"{word} "
    text = text.rstrip()
    space = NARROW_NO_BREAK_SPACE if mark in ("?", "!", ";") else ""
    return text[0].upper() + text[1:] + space + mark


def attach(preposition: str, phrase: Words) -> Words:
    """`à` or `de` (or a group ending in `de`) before a noun phrase, contracted with its article."""
    *head, last = preposition.split()
    contracted = {"à": ("au", "aux"), "de": ("du", "des")}.get(last)
    if contracted and phrase[0] == "le" and not has_vowel_sound(phrase[1]):
        return (*head, contracted[0], *phrase[1:])
    if contracted and phrase[0] == "les":
        return (*head, contracted[1], *phrase[1:])
    return (*head, last, *phrase)


def pluralise(word: str) -> str:
    """The plural of a noun or of a singular adjective form."""
    if word[-1] in "sxz":
        return word
    if word.endswith("eau") or word == "hibou":
        return f"{word}x"
    if word.endswith("al"):
        return f"{word[:-1]}ux"
    return f"{word}s"


def agree(adjective: FrenchAdjective, gender: Gender, plural: bool = False, following: str = "") -> str:
    """The form of `adjective` for a gender and number; `following` is the noun, where it comes after."""
    if gender == "f":
        return pluralise(adjective.feminine) if plural else adjective.feminine
    if plural:
        return pluralise(adjective.masculine)
    if adjective.before_vowel and following and has_vowel_sound(following):
        return adjective.before_vowel
    return adjective.masculine


def noun_phrase(
    determiner: str, noun: str, gender: Gender, plural: bool = False, adjective: FrenchAdjective | None = None
) -> Words:
    """Determiner (masculine singular, a number, `de`, or empty), noun and adjective, agreed and in order."""
    words: list[str] = [pluralise(noun) if plural else noun]
    if adjective:
        form = agree(adjective, gender, plural, words[0] if adjective.precedes else "")
        words.insert(0 if adjective.precedes else 1, form)
    if determiner == "un" and plural and adjective and adjective.precedes:
        determiner = "de"
    if determiner in DETERMINERS:
        determiner = _determiner(determiner, gender, plural, words[0])
    return (determiner, *words) if determiner else tuple(words)


def _determiner(determiner: str, gender: Gender, plural: bool, following: str) -> str:
    masculine, feminine, several = DETERMINERS[determiner]
    if plural:
        return "quelles" if determiner == "quel" and gender == "f" else several
    if determiner == "ce" and gender == "m" and has_vowel_sound(following):
        return "cet"
    if determiner in ("mon", "ton", "son") and has_vowel_sound(following):
        return masculine
    return feminine if gender == "f" else masculine


@cache
def french_verb(infinitive: str) -> FrenchVerb:
    """The verb with this infinitive, irregular or of the -er, -ir or -dre groups; `se` makes it reflexive."""
    if infinitive.startswith("se "):
        return french_verb(infinitive[3:])._replace(is_reflexive=True)
    if infinitive in IRREGULAR:
        present, participle, future_stem = IRREGULAR[infinitive]
        return FrenchVerb(infinitive, tuple(present.split()), participle, future_stem)
    stem, ending = infinitive[:-2], infinitive[-2:]
    if ending == "ir":
        present_forms = [stem + end for end in ("is", "is", "it", "issons", "issez", "issent")]
        return FrenchVerb(infinitive, tuple(present_forms), f"{stem}i", infinitive)
    if ending == "re":
        present_forms = [stem + end for end in ("s", "s", "", "ons", "ez", "ent")]
        return FrenchVerb(infinitive, tuple(present_forms), f"{stem}u", infinitive[:-1])
    strong = f"{stem[:-2]}è{stem[-1]}" if stem[-2] in "eé" else stem
    soft = f"{stem}e" if stem.endswith("g") else stem
    present_forms = [f"{strong}e", f"{strong}es", f"{strong}e", f"{soft}ons", f"{stem}ez", f"{strong}ent"]
    future_stem = f"{strong}er" if stem[-2] == "e" else infinitive
    return FrenchVerb(infinitive, tuple(present_forms), f"{stem}é", future_stem)


def conjugate(verb: FrenchVerb, tense: str, person: int) -> str:
    """One word: the `present`, `future`, `imperfect` or `imperative` form."""
    if tense == "future":
        return verb.future_stem + FUTURE_ENDINGS[person]
    if tense == "imperfect":
        stem = "ét" if verb.infinitive == "être" else verb.present[3].removesuffix("ons")
        ending = IMPERFECT_ENDINGS[person]
        return stem.removesuffix("e") + ending if stem.endswith("ge") and ending[0] == "i" else stem + ending
    form = verb.present[person]
    return form[:-1] if tense == "imperative" and person == 1 and form.endswith("es") else form


def predicate(
    verb: FrenchVerb,
    tense: str,
    person: int,
    *,
    negation: str = "",
    adverb: str = "",
    pronoun: str = "",
    agreement: tuple[Gender, bool] = ("m", False),
) -> Words:
    """The verb group: negation around the conjugated verb, pronouns and adverb in place, participle agreed.

    tense: present, future, imperfect, imperative, past (passé composé) or a key of HELPERS (with infinitive).
    agreement: gender and plural of the participle (the subject's with être, the pronoun's with avoir).
    """
    ne = ("ne",) if negation else ()
    clitic = (pronoun,) if pronoun else (REFLEXIVES[person],) if verb.is_reflexive else ()
    after = tuple(word for word in (negation, adverb) if word)
    if tense in HELPERS:
        helper = conjugate(french_verb(HELPERS[tense]), "present", person)
        return (*ne, helper, *after, *clitic, verb.infinitive)
    if tense == "past":
        auxiliary = "être" if verb.is_reflexive or verb.infinitive in WITH_ETRE else "avoir"
        form = conjugate(french_verb(auxiliary), "present", person)
        participle = FrenchAdjective(verb.participle, f"{verb.participle}e")
        return (*ne, *clitic, form, *after, agree(participle, *agreement))
    return (*ne, *clitic, conjugate(verb, tense, person), *after)
