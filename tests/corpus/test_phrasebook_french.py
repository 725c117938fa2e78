"""The French of the bundled corpus: elision, contraction, negation, agreement, checked without its grammar."""

import re

import pytest

from passerelle.corpus.phrasebook import idioms

VOWEL = r"(?!(?:hé|hib|haric|harp|héro|hockey|huit|onze|oui\b))(?:[aàâeéèêiîoôuœ]|h|y\b)"

# nouns, singular and plural, by gender: written for this test
_MASCULINE = """
homme hommes garçon garçons enfant enfants voisin voisins professeur médecin héros ami frère frères père
chien chiens chat chats cheval chevaux oiseau oiseaux lapin lapins hérisson hérissons hibou hiboux
poisson poissons manteau manteaux chapeau chapeaux livre livres journal journaux film films vélo vélos
parapluie sac sacs ordinateur téléphone piano ballon ballons lit appartement hôtel hôtels hôpital
hôpitaux marché parc jardin jardins musée musées restaurant village pont château arbre arbres œuf œufs
gâteau gâteaux haricots train bus pain fromage chocolat miel lait café thé football hiver été
"""
_FEMININE = """
femme fille filles sœur sœurs mère grand-mère vache vaches souris robe robes chemise chemises écharpe
chaussure chaussures lettre lettres histoire histoires chanson voiture voitures clé clés horloge montre
boîte boîtes guitare harpe assiette assiettes table chaise chaises porte portes fenêtre fenêtres maison
maisons école écoles église gare bibliothèque plage ville rivière île rue rues cuisine pomme pommes
orange oranges viande soupe huile eau musique radio mer
"""
NOUN_OR_VERB = {"lit", "porte", "portes", "montre"}
SINGULAR_ONLY = {"bus"}
PLURAL_TOO = {"souris", "héros"}
# masculine singular, feminine singular, masculine plural, feminine plural
_ADJECTIVES = """
grand grande grands grandes, petit petite petits petites, vieux vieille vieux vieilles
vieil - - -, beau belle beaux belles, bel - - -
nouveau nouvelle nouveaux nouvelles, nouvel - - -, bon bonne bons bonnes
joli jolie jolis jolies, jeune jeune jeunes jeunes, long longue longs longues
rouge rouge rouges rouges, noir noire noirs noires, blanc blanche blancs blanches
vert verte verts vertes, bleu bleue bleus bleues, jaune jaune jaunes jaunes
gris grise gris grises, cher chère chers chères, intéressant intéressante intéressants intéressantes
français française français françaises, anglais anglaise anglais anglaises, heureux heureuse heureux heureuses
triste triste tristes tristes, fatigué fatiguée fatigués fatiguées, prêt prête prêts prêtes
seul seule seuls seules, fier fière fiers fières, gentil gentille gentils gentilles
inquiet inquiète inquiets inquiètes, occupé occupée occupés occupées, ouvert ouverte ouverts ouvertes
fermé fermée fermés fermées, chaud chaude chauds chaudes, froid froide froids froides
âgé âgée âgés âgées, neuf neuve neufs neuves, parti partie partis parties
allé allée allés allées, arrivé arrivée arrivés arrivées, rentré rentrée rentrés rentrées
tombé tombée tombés tombées
"""
MASCULINE = frozenset(_MASCULINE.split())
FEMININE = frozenset(_FEMININE.split())
ADJECTIVES = [forms.split() for forms in _ADJECTIVES.strip().replace("\n", ", ").split(", ")]
DETERMINERS = {
    "un": "ms",
    "une": "fs",
    "le": "ms",
    "la": "fs",
    "les": "mfp",
    "des": "mfp",
    "ces": "mfp",
    "ce": "ms",
    "cet": "ms",
    "cette": "fs",
    "mes": "mfp",
    "ses": "mfp",
    "nos": "mfp",
    "leurs": "mfp",
    "ma": "fs",
    "sa": "fs",
    "ta": "fs",
    "notre": "mfs",
    "votre": "mfs",
    "leur": "mfs",
    "quel": "ms",
    "quelle": "fs",
    "quels": "mp",
    "quelles": "fp",
    "au": "ms",
    "du": "ms",
    "aux": "mfp",
    "deux": "mfp",
    "huit": "mfp",
}


def faults(pattern: str, sentences: list[str]) -> list[str]:
    return [sentence for sentence in sentences if re.search(pattern, sentence, re.IGNORECASE)]


def marks_of_noun(noun: str) -> str:
    """Marks among m, f, s, p that the noun allows."""
    is_plural = noun[-1] in "sx" and noun not in SINGULAR_ONLY
    return ("m" if noun in MASCULINE else "f") + ("sp" if noun in PLURAL_TOO else "p" if is_plural else "s")


def marks_of_adjective(word: str) -> list[str]:
    """ms, fs, mp, fp: what the form stands for; empty for a word that is no adjective known here."""
    return [
        mark
        for forms in ADJECTIVES
        for form, mark in zip(forms, ("ms", "fs", "mp", "fp"), strict=True)
        if form == word
    ]


def suits(word: str, noun: str) -> bool:
    """Whether a determiner or adjective, where it is known, has the gender and number of the noun."""
    allowed = [DETERMINERS[word]] if word in DETERMINERS else marks_of_adjective(word)
    wanted = set(marks_of_noun(noun))
    return not allowed or any(
        wanted & set("mf") & set(each) and wanted & set("sp") & set(each) for each in allowed
    )


def test_words_are_elided_before_vowels_and_nowhere_else(french: list[str]) -> None:
    assert faults(rf"\b(je|me|te|se|le|la|ne|de|que|ce|ma|ta|sa) {VOWEL}", french) == []
    assert faults(rf"\b([jmtsldnc]|qu)'(?!{VOWEL})", french) == []
    assert faults(r"\bc'(?!est\b)", french) == []
    before_a_noun = r"\b(un|le|ce|mon|ton|son|notre|votre|leur|de) (beau|nouveau|vieux)"
    assert faults(rf"{before_a_noun} {VOWEL}(?!\w*[sx]\b)", french) == []
    assert faults(rf"\b(bel|nouvel|vieil|cet) (?!{VOWEL})", french) == []


def test_prepositions_contract_with_articles(french: list[str]) -> None:
    assert faults(r"\b(de|à) (le|les)\b", french) == []
    assert faults(rf"\b(au|du) {VOWEL}", french) == []
    assert len(faults(r"\b(au|du|aux|des)\b", french)) > 500


def test_every_negation_has_both_halves_around_its_verb(pairs: list[tuple[str, str]]) -> None:
    spoken = set(idioms())
    made = [french for english, french in pairs if (english, french) not in spoken]
    negated = [sentence for sentence in made if re.search(r"\b(pas|jamais)\b", sentence)]
    assert len(negated) > 2000
    whole = r"\b[Nn](e |')((m|t|s|l)(e |a |es |')|nous |vous |y )?[\w-]+ (pas|jamais)\b"
    for sentence in negated:
        assert re.search(whole, sentence), sentence
    for sentence in made:
        halves = len(re.findall(r"\b(?:ne |n')", sentence, re.IGNORECASE))
        assert halves == len(re.findall(r"\b(?:pas|jamais)\b|\bplus\b(?! \w+ qu)", sentence)), sentence


def test_getting_up_and_going_to_bed_take_the_pronoun_of_their_subject(french: list[str]) -> None:
    wanted = {
        "je": r"\bm(e |')",
        "tu": r"\bt(e |')",
        "nous": r"\bnous .*\bnous ",
        "vous": r"\bvous .*\bvous ",
    }
    checked = 0
    for sentence in faults(r" à \w+ heures", faults(r"\b(lev|lèv|couch)", french)):
        subject = re.sub(r"est-ce qu(e |')", "", sentence.lower()).split()[0]
        assert re.search(wanted.get(subject, r"\bs(e |')"), sentence.lower()), sentence
        checked += 1
    assert checked > 100


def test_negation_turns_indefinite_objects_into_de(french: list[str]) -> None:
    places = r"\b(dans|sur|sous|besoin|peur|près|face|côté|(jou|rentr|vien)\w+( pas| jamais| plus)?)"
    negated = faults(r"\bn(e |')\S+( \S+)? (pas|jamais|plus)\b", french)
    objects = [
        re.sub(rf"{places} (d'|de )?(un|une|du|des)\b", "", sentence)
        for sentence in negated
        if not re.search(r"\bn'est pas\b|aucun", sentence)
    ]
    assert faults(r" (un|une|du|des) (?!voisin|professeur|héros|enfants)", objects) == []
    assert len(faults(r" pas d(e |')", negated)) > 250


def test_articles_and_adjectives_agree_with_their_nouns(french: list[str]) -> None:
    checked = 0
    for sentence in french:
        words = ["", "", *re.findall(r"[\w-]+", re.sub(r"\w+'", "", sentence.lower())), ""]
        for article, before, noun, after in zip(words, words[1:], words[2:], [*words[3:], ""], strict=False):
            if noun not in MASCULINE | FEMININE or (noun in NOUN_OR_VERB and before not in DETERMINERS):
                continue
            assert suits(before, noun), sentence
            if marks_of_adjective(before):
                assert suits(article, noun), sentence
            if after not in DETERMINERS:
                assert suits(after, noun), sentence
            checked += 1
    assert checked > 5000


@pytest.mark.parametrize(
    ("pronoun", "marks"),
    [
        ("il", "ms"),
        ("elle", "fs"),
        ("ils", "mp"),
        ("elles", "fp"),
        ("nous", "mp"),
        ("vous", "mp"),
        ("marie", "fs"),
        ("paul", "ms"),
        ("ma sœur", "fs"),
        ("les filles", "fp"),
        ("mon amie", "fs"),
        ("cette maison", "fs"),
    ],
)
def test_what_is_said_of_a_subject_agrees_with_it(pronoun: str, marks: str, french: list[str]) -> None:
    be = r"(?:est|sont|sommes|êtes|était|étaient|étions|étiez)"
    said = rf"\b{pronoun} (?:n'|ne )?{be} (?:pas )?(?:très |trop |plus |moins |aussi )?(\w+)"
    found = [match for sentence in french for match in re.findall(said, sentence.lower())]
    known = [adjective for adjective in found if marks_of_adjective(adjective)]
    assert len(known) >= 3
    assert [adjective for adjective in known if marks not in marks_of_adjective(adjective)] == []
