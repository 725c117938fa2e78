"""The phrasebook's adjectives, verbs and subjects as plain tables."""

from typing import NamedTuple

from passerelle.corpus.english_grammar import EnglishVerb, english_verb
from passerelle.corpus.french_grammar import FrenchAdjective, FrenchVerb, Gender, french_verb
from passerelle.corpus.phrasebook_nouns import as_gender, table_rows


class Action(NamedTuple):
    """A verb in both languages; `preposition` (à, de) stands before the French object.

    is_progressive: the present is `is eating` in English; otherwise `likes`.
    """

    english: EnglishVerb
    french: FrenchVerb
    is_progressive: bool
    preposition: str


class Subject(NamedTuple):
    """A subject in both languages; person 0 to 5 as in the grammars, gender as French shows it."""

    english: str
    french: str
    person: int
    gender: Gender
    noun: str = ""


# english | masculine | feminine | before a vowel (with this form the adjective precedes its noun)
_ADJECTIVES = """
big | grand | grande | grand
small | petit | petite | petit
old | vieux | vieille | vieil
beautiful | beau | belle | bel
new | nouveau | nouvelle | nouvel
good | bon | bonne | bon
pretty | joli | jolie | joli
young | jeune | jeune | jeune
new (unused) | neuf | neuve
long | long | longue | long
red | rouge | rouge
black | noir | noire
white | blanc | blanche
green | vert | verte
blue | bleu | bleue
yellow | jaune | jaune
gray | gris | grise
interesting | intéressant | intéressante
expensive | cher | chère
quiet | calme | calme
famous | célèbre | célèbre
French | français | française
English | anglais | anglaise
rich | riche | riche
happy | heureux | heureuse
sad | triste | triste
tired | fatigué | fatiguée
sick | malade | malade
ready | prêt | prête
alone | seul | seule
kind | gentil | gentille
worried | inquiet | inquiète
proud | fier | fière
busy | occupé | occupée
tall | grand | grande
aged | âgé | âgée
hot | chaud | chaude
cold | froid | froide
open | ouvert | ouverte
closed | fermé | fermée
dirty | sale | sale
"""

# english | french | present is progressive | preposition
_ACTIONS = """
read | lire | yes
write | écrire | yes
buy | acheter | yes
sell | vendre | yes
look for | chercher | yes
find | trouver | no
lose | perdre | no
see | voir | no
wear | porter | yes
open | ouvrir | yes
close | fermer | yes
wash | laver | yes
visit | visiter | yes
wait for | attendre | yes
watch | regarder | yes
listen to | écouter | yes
help | aider | yes
know | connaître | no
take | prendre | yes
forget | oublier | no
repair | réparer | yes
choose | choisir | yes
eat | manger | yes
drink | boire | yes
have | avoir | no
want | vouloir | no
need | avoir besoin | no | de
talk to | parler | yes | à
give | donner | yes
like | aimer | no
love | adorer | no
understand | comprendre | no
work | travailler | yes
sleep | dormir | yes
sing | chanter | yes
dance | danser | yes
swim | nager | yes
walk | marcher | yes
play | jouer | yes
live | habiter | no
speak | parler | no
go | aller | yes
come | venir | yes
leave | partir | yes
arrive | arriver | yes
stay | rester | yes
come back | rentrer | yes
fall | tomber | yes
get up | se lever | no
go to bed | se coucher | no
think | penser | no
know (that) | savoir | no
hope | espérer | no
"""

_SUBJECTS = """
I | je | 0 | m
I (woman) | je | 0 | f
you | tu | 1 | m
you (several) | vous | 4 | m
he | il | 2 | m
she | elle | 2 | f
we | nous | 3 | m
they | ils | 5 | m
they (women) | elles | 5 | f
Marie | Marie | 2 | f
Anne | Anne | 2 | f
Paul | Paul | 2 | m
my brother | mon frère | 2 | m | brother
my sister | ma sœur | 2 | f | sister
my mother | ma mère | 2 | f | mother
my friend | mon ami | 2 | m | friend
my friend (woman) | mon amie | 2 | f | friend
the teacher | le professeur | 2 | m | teacher
the children | les enfants | 5 | m | child
my parents | mes parents | 5 | m
the girls | les filles | 5 | f | girl
our neighbors | nos voisins | 5 | m | neighbor
"""

EXPRESSIONS = {
    "hungry": "faim",
    "thirsty": "soif",
    "cold": "froid",
    "hot": "chaud",
    "sleepy": "sommeil",
    "scared": "peur",
    "right": "raison",
    "wrong": "tort",
}
"""English be + adjective, French avoir + noun."""

NUMBERS = {
    "two": "deux",
    "three": "trois",
    "four": "quatre",
    "five": "cinq",
    "six": "six",
    "seven": "sept",
    "eight": "huit",
    "nine": "neuf",
    "ten": "dix",
    "eleven": "onze",
    "twelve": "douze",
}


def _action(english: str, french: str, progressive: str, preposition: str = "") -> Action:
    infinitive, _, complement = french.partition(" ") if french.startswith("avoir ") else (french, "", "")
    return Action(
        english_verb(english.removesuffix(" (that)")),
        french_verb(infinitive),
        progressive == "yes",
        f"{complement} {preposition}".strip(),
    )


def _adjective(masculine: str, feminine: str, before_vowel: str = "") -> FrenchAdjective:
    return FrenchAdjective(masculine, feminine, before_vowel != "", before_vowel)


ADJECTIVES = {english: _adjective(*forms) for english, *forms in table_rows(_ADJECTIVES)}
ACTIONS = {english: _action(english, *rest) for english, *rest in table_rows(_ACTIONS)}
SUBJECTS = {
    key: Subject(key.partition(" (")[0], french, int(person), as_gender(gender), *noun)
    for key, french, person, gender, *noun in table_rows(_SUBJECTS)
}

PRONOUNS = ("I", "you", "you (several)", "he", "she", "we", "they")
NAMED = (
    "Marie",
    "Anne",
    "Paul",
    "my brother",
    "my sister",
    "the children",
    "my parents",
    "the teacher",
    "the girls",
    "our neighbors",
    "my friend",
    "my friend (woman)",
)


def subjects(*names: str) -> list[Subject]:
    """The subjects with these names."""
    return [SUBJECTS[name] for name in names]
