"""The phrasebook's two grammars, against forms written by hand."""

import pytest

from passerelle.corpus import english_grammar as english
from passerelle.corpus.french_grammar import (
    FrenchAdjective,
    agree,
    attach,
    conjugate,
    french_verb,
    has_vowel_sound,
    noun_phrase,
    predicate,
    write_french,
)

OLD = FrenchAdjective("vieux", "vieille", True, "vieil")
BEAUTIFUL = FrenchAdjective("beau", "belle", True, "bel")
RED = FrenchAdjective("rouge", "rouge")
GRAY = FrenchAdjective("gris", "grise")


@pytest.mark.parametrize(
    ("infinitive", "tense", "forms"),
    [
        ("parler", "present", "parle parles parle parlons parlez parlent"),
        ("manger", "present", "mange manges mange mangeons mangez mangent"),
        ("manger", "imperfect", "mangeais mangeais mangeait mangions mangiez mangeaient"),
        ("acheter", "present", "achète achètes achète achetons achetez achètent"),
        ("acheter", "future", "achèterai achèteras achètera achèterons achèterez achèteront"),
        ("espérer", "present", "espère espères espère espérons espérez espèrent"),
        ("espérer", "future", "espérerai espéreras espérera espérerons espérerez espéreront"),
        ("choisir", "present", "choisis choisis choisit choisissons choisissez choisissent"),
        ("vendre", "present", "vends vends vend vendons vendez vendent"),
        ("vendre", "future", "vendrai vendras vendra vendrons vendrez vendront"),
        ("être", "imperfect", "étais étais était étions étiez étaient"),
        ("avoir", "future", "aurai auras aura aurons aurez auront"),
        ("boire", "imperfect", "buvais buvais buvait buvions buviez buvaient"),
        ("venir", "future", "viendrai viendras viendra viendrons viendrez viendront"),
    ],
)
def test_verbs_have_the_forms_of_a_conjugation_table(infinitive: str, tense: str, forms: str) -> None:
    verb = french_verb(infinitive)
    assert [conjugate(verb, tense, person) for person in range(6)] == forms.split()


@pytest.mark.parametrize(
    ("infinitive", "forms"),
    [
        ("manger", "mange mangeons mangez"),
        ("ouvrir", "ouvre ouvrons ouvrez"),
        ("prendre", "prends prenons prenez"),
        ("choisir", "choisis choisissons choisissez"),
    ],
)
def test_orders_drop_the_s_of_verbs_in_es(infinitive: str, forms: str) -> None:
    assert [conjugate(french_verb(infinitive), "imperative", person) for person in (1, 3, 4)] == forms.split()


@pytest.mark.parametrize(
    "word", ["école", "homme", "hôtel", "œuf", "île", "y", "hiver", "huile", "Anne", "est-ce"]
)
def test_vowels_and_mute_h_call_for_elision(word: str) -> None:
    assert has_vowel_sound(word)
    assert write_french(("le", word), "") == f"L'{word}"


@pytest.mark.parametrize(
    "word", ["héros", "hibou", "haricots", "harpe", "hockey", "huit", "onze", "maison", "yaourt"]
)
def test_consonants_and_aspirated_h_do_not(word: str) -> None:
    assert not has_vowel_sound(word)
    assert write_french(("le", word), "") == f"Le {word}"


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (noun_phrase("ce", "arbre", "m"), "cet arbre"),
        (noun_phrase("ce", "arbre", "m", adjective=OLD), "ce vieil arbre"),
        (noun_phrase("ce", "arbre", "m", True, OLD), "ces vieux arbres"),
        (noun_phrase("ce", "hibou", "m", adjective=OLD), "ce vieux hibou"),
        (noun_phrase("ce", "maison", "f", adjective=OLD), "cette vieille maison"),
        (noun_phrase("mon", "amie", "f"), "mon amie"),
        (noun_phrase("mon", "amie", "f", adjective=OLD), "ma vieille amie"),
        (noun_phrase("ton", "harpe", "f"), "ta harpe"),
        (noun_phrase("son", "école", "f"), "son école"),
        (noun_phrase("leur", "chien", "m", True), "leurs chiens"),
        (noun_phrase("un", "oiseau", "m", True, BEAUTIFUL), "de beaux oiseaux"),
        (noun_phrase("un", "oiseau", "m", True, GRAY), "des oiseaux gris"),
        (noun_phrase("un", "oiseau", "m", adjective=BEAUTIFUL), "un bel oiseau"),
        (noun_phrase("quel", "pomme", "f", True), "quelles pommes"),
        (noun_phrase("trois", "cheval", "m", True, RED), "trois chevaux rouges"),
        (noun_phrase("de", "orange", "f", True), "d'oranges"),
        (attach("de", noun_phrase("le", "eau", "f")), "de l'eau"),
        (attach("de", noun_phrase("le", "pain", "m")), "du pain"),
        (attach("à", noun_phrase("le", "hôpital", "m")), "à l'hôpital"),
        (attach("à", noun_phrase("le", "héros", "m")), "au héros"),
        (attach("à", noun_phrase("le", "enfant", "m", True)), "aux enfants"),
        (attach("en face de", noun_phrase("le", "gare", "f")), "en face de la gare"),
        (attach("à côté de", noun_phrase("le", "hôtel", "m", True)), "à côté des hôtels"),
    ],
)
def test_noun_phrases_agree_elide_and_contract(words: tuple[str, ...], written: str) -> None:
    assert write_french(("et", *words), "") == f"Et {written}"


def test_negation_goes_around_the_conjugated_verb_and_its_pronouns() -> None:
    assert (
        " ".join(
            predicate(french_verb("voir"), "past", 0, negation="pas", pronoun="la", agreement=("f", False))
        )
        == "ne la ai pas vue"
    )
    assert (
        " ".join(predicate(french_verb("se lever"), "past", 5, negation="jamais", agreement=("f", True)))
        == "ne se sont jamais levées"
    )
    assert " ".join(predicate(french_verb("manger"), "going", 3, negation="plus")) == "ne allons plus manger"
    assert (
        " ".join(predicate(french_verb("aider"), "can", 2, negation="pas", pronoun="me"))
        == "ne peut pas me aider"
    )


def test_a_question_mark_follows_a_narrow_no_break_space() -> None:
    words = ("est-ce que", "elle", "aime", "le", "école")
    assert write_french(words, "?") == "Est-ce qu'elle aime l'école\u202f?"
    assert write_french(words) == "Est-ce qu'elle aime l'école."


def test_an_adjective_takes_its_vowel_form_only_before_a_masculine_singular_noun() -> None:
    assert agree(OLD, "m", following="homme") == "vieil"
    assert agree(OLD, "m") == "vieux"
    assert agree(OLD, "m", True, "hommes") == "vieux"
    assert agree(OLD, "f", following="île") == "vieille"


def test_english_forms_follow_their_spelling_rules() -> None:
    assert [english.third_person(verb) for verb in ("go", "wash", "have", "play", "choose")] == [
        "goes",
        "washes",
        "has",
        "plays",
        "chooses",
    ]
    assert [english.ing_form(verb) for verb in ("write", "swim", "see", "open", "forget")] == [
        "writing",
        "swimming",
        "seeing",
        "opening",
        "forgetting",
    ]
    assert [english.past_form(verb) for verb in ("live", "stay", "study", "eat", "open")] == [
        "lived",
        "stayed",
        "studied",
        "ate",
        "opened",
    ]
    assert [english.pluralise(noun) for noun in ("box", "church", "city", "boy", "mouse", "story")] == [
        "boxes",
        "churches",
        "cities",
        "boys",
        "mice",
        "stories",
    ]
    assert [english.with_article(words) for words in ("old dog", "dog", "umbrella")] == [
        "an old dog",
        "a dog",
        "an umbrella",
    ]


@pytest.mark.parametrize(
    ("tense", "form", "expected"),
    [
        ("present", "plain", "she's looking for it"),
        ("present", "not", "she isn't looking for it"),
        ("present", "ask", "is she looking for it"),
        ("past", "not", "she didn't look for it"),
        ("going", "plain", "she's going to look for it"),
        ("future", "not", "she won't look for it"),
        ("future", "plain", "she'll look for it"),
        ("want", "ask", "does she want to look for it"),
        ("must", "not", "she must not look for it"),
        ("used", "plain", "she used to look for it"),
    ],
)
def test_english_clauses_have_their_auxiliary(tense: str, form: str, expected: str) -> None:
    verb = english.english_verb("look for")
    text = english.clause("she", 2, verb, tense, form, "it", progressive=True)
    assert " ".join(text.split()) == expected
