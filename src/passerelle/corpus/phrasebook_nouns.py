"""The phrasebook's nouns as a plain table, each with the adjectives that suit it."""

from typing import NamedTuple

from passerelle.corpus.french_grammar import Gender


class Noun(NamedTuple):
    """A noun in both languages and the adjectives that may go with it."""

    english: str
    french: str
    gender: Gender
    adjectives: tuple[str, ...]


# english | french | gender | adjectives
_NOUNS = """
man | homme | m | old young rich famous
woman | femme | f | old young rich famous
girl | fille | f | young
boy | garçon | m | young
child | enfant | m | young
neighbor | voisin | m | old new young
teacher | professeur | m | old new good young
doctor | médecin | m | old new good young
hero | héros | m | young famous
friend | ami | m | old good new
brother | frère | m |
sister | sœur | f |
father | père | m |
mother | mère | f |
grandmother | grand-mère | f |
dog | chien | m | big small old black white beautiful
cat | chat | m | small old black white gray
horse | cheval | m | old black white gray beautiful
bird | oiseau | m | small yellow blue beautiful
rabbit | lapin | m | small white gray
cow | vache | f | white old
hedgehog | hérisson | m | small
owl | hibou | m | old white big
mouse | souris | f | small gray white
fish | poisson | m | blue
coat | manteau | m | black red green blue white old new expensive beautiful
hat | chapeau | m | black red green blue white old new pretty
dress | robe | f | black red green blue white yellow new beautiful pretty
shirt | chemise | f | white blue green yellow new
scarf | écharpe | f | red green blue yellow gray pretty
shoe | chaussure | f | black white red new old expensive
book | livre | m | old new good interesting French English
letter | lettre | f | long old
newspaper | journal | m | old French English
story | histoire | f | long good beautiful interesting
movie | film | m | old new good French interesting
song | chanson | f | old new pretty French English
car | voiture | f | red green blue white gray old new expensive
bicycle | vélo | m | red green blue yellow old new
key | clé | f | small old
umbrella | parapluie | m | black red green yellow old
clock | horloge | f | old beautiful
watch | montre | f | new old expensive beautiful
bag | sac | m | big small black red
box | boîte | f | big small red
computer | ordinateur | m | new old expensive
phone | téléphone | m | new old
guitar | guitare | f | old new
piano | piano | m | old black
harp | harpe | f | old beautiful
plate | assiette | f | white blue pretty
ball | ballon | m | red blue yellow
table | table | f | big small old
chair | chaise | f | old white
bed | lit | m | big
door | porte | f | red green old
window | fenêtre | f | big small
house | maison | f | big small old new white beautiful
apartment | appartement | m | small new expensive
school | école | f | big new old
church | église | f | small old beautiful
hotel | hôtel | m | big new good quiet expensive
hospital | hôpital | m | big new old
station | gare | f | new big old
market | marché | m | big small
park | parc | m | big beautiful
garden | jardin | m | small pretty big beautiful
library | bibliothèque | f | big new
museum | musée | m | new small famous interesting
restaurant | restaurant | m | good expensive new French
beach | plage | f | beautiful big
village | village | m | old pretty small quiet
city | ville | f | big beautiful
river | rivière | f | long beautiful
bridge | pont | m | old new
castle | château | m | old beautiful big famous
island | île | f | small beautiful
tree | arbre | m | old big beautiful
street | rue | f | long quiet
kitchen | cuisine | f | small big
apple | pomme | f | red green good
orange | orange | f | good
egg | œuf | m | small
cake | gâteau | m | good small
bean | haricot | m | green
train | train | m |
bus | bus | m |
bread | pain | m | good
cheese | fromage | m | good
meat | viande | f |
soup | soupe | f | good
chocolate | chocolat | m | good
honey | miel | m |
oil | huile | f |
water | eau | f |
milk | lait | m |
coffee | café | m | good
tea | thé | m | good
music | musique | f |
radio | radio | f |
soccer | football | m |
hockey | hockey | m |
winter | hiver | m |
summer | été | m |
sea | mer | f |
"""


def table_rows(table: str) -> list[list[str]]:
    """The cells of a table whose columns are parted by bars."""
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def listed(words: str) -> tuple[str, ...]:
    """The words of a list written with spaces."""
    return tuple(words.split())


def as_gender(text: str) -> Gender:
    """`m` or `f`."""
    assert text in ("m", "f"), text
    return "f" if text == "f" else "m"


NOUNS = {
    english: Noun(english, french, as_gender(gender), tuple(adjectives.split()))
    for english, french, gender, adjectives in table_rows(_NOUNS)
}
