"""What goes with what in the phrasebook, as plain tables: what is done to which things, where and why."""

from passerelle.corpus.phrasebook_nouns import listed, table_rows

# action | nouns | determiners, + for the plural | tenses
FRAMES = table_rows("""
read | book letter newspaper story | a the this own a+ | present past going want must
write | letter story book | a this | present past going want must
buy | dress shirt coat hat scarf bicycle car umbrella watch phone computer guitar harp book | a this the \
| present past going future want can
buy | shoe apple orange egg chair | a+ this+ the+ | present past going want must
sell | car house bicycle piano guitar horse cow clock | a the this own a+ | present past going want
look for | key bag umbrella hat scarf phone book cat dog | a the own | present past must
look for | shoe key | own+ the+ | present
find | key bag umbrella hat phone ball watch dog cat hedgehog | a the own | past can
lose | key bag umbrella hat phone ball watch scarf dog letter | own the | past
see | horse bird rabbit hedgehog owl mouse fish cow castle bridge | a the this a+ | present past can
wear | coat hat dress shirt scarf | a own this | present past going want
wear | shoe | a+ own+ | present
open | door window box letter bag umbrella | the this own | present past going can must
close | door window box bag book school restaurant | the this | present past going can must
wash | car shirt plate dress dog bicycle window | the this own | present past going must
wash | plate apple shirt | the+ this+ own+ | present past going
visit | castle museum church island village city park | the this a | present past going future want can
wait for | train bus | the this a | present past must
wait for | doctor teacher | the | present past must
wait for | friend brother sister neighbor mother | own | present past must
watch | movie | a the this | present past going want
watch | bird cow fish child horse | the+ this+ | present past
listen to | song story music radio teacher | the this | present past must want
help | child man woman girl boy neighbor | the this | present past going future want can must
help | brother sister father mother grandmother friend | own | present past going future want can must
know | man woman doctor hero boy girl city village song story island | this the | present
take | train bus | the this | past going future want can must
take | bicycle car umbrella key bag | the own | past going want can
forget | key umbrella hat bag book phone | own the this | past
repair | car bicycle clock computer chair watch door | the this own | present past going can must
choose | dress book hat cake | a the this | present past going
eat | apple orange egg cake | a the this own a+ | present past going want can
need | key umbrella coat computer book | a the this own | present
need | doctor friend | a own | present
want | dog cat horse rabbit bicycle car house cake apple phone guitar | a this | present
want | apple shoe book orange | a+ this+ | present
talk to | teacher doctor neighbor woman man | the this | present past going want must
talk to | friend mother father sister dog cat | own | present past want must
""")

# action | mass nouns (+ for a plural)
MASS_FRAMES = table_rows("""
eat | bread cheese meat soup chocolate honey bean+ egg+
drink | water milk coffee tea
buy | bread cheese meat chocolate honey oil water milk coffee tea
""")

LIKED = listed(
    "school music soccer hockey winter summer chocolate cheese honey coffee tea milk soup meat "
    "cat+ dog+ horse+ bird+ owl+ hedgehog+ mouse+ apple+ orange+ bean+ cake+ story+ book+ museum+ hospital+ "
    "hero+"
)
LIKED_THINGS = listed(
    "song story movie book dress hat garden house village city teacher hotel island tree cake"
)

OWNED = listed(
    "dog cat horse rabbit bird cow car bicycle umbrella computer phone watch guitar piano harp "
    "house garden apartment"
)
COUNTED = listed("dog cat horse rabbit bird cow car bicycle hat dress shirt book key child brother sister")

# noun | English: at, to, from | where French says à / au
PLACES = table_rows("""
school | at school | to school | from school
hospital | at the hospital | to the hospital | from the hospital
hotel | at the hotel | to the hotel | from the hotel
station | at the station | to the station | from the station
market | at the market | to the market | from the market
beach | at the beach | to the beach | from the beach
library | at the library | to the library | from the library
museum | at the museum | to the museum | from the museum
restaurant | at the restaurant | to the restaurant | from the restaurant
church | at church | to church | from church
""")
INDOORS = listed("garden house kitchen park village castle street church")
BUILDINGS = listed("school church hotel hospital station market park library museum restaurant castle")
OUTDOORS = listed("bridge river beach")
# English | French
AROUND = table_rows("""
near | près de
next to | à côté de
opposite | en face de
in front of | devant
behind | derrière
""")

MOODS = listed("happy sad tired sick ready alone kind worried proud busy tall rich famous young old")
PAST_MOODS = listed("happy sad tired sick ready alone worried proud busy")
# adjective | nouns
STATES = table_rows("""
hot | soup coffee tea water milk
cold | soup coffee tea water milk sea
open | door window box school museum library restaurant market
closed | door window box school museum library restaurant hotel station
dirty | plate shirt car window river coat
expensive | hotel restaurant car watch coat cheese
old | house castle church bridge clock dog horse tree bicycle piano
new (unused) | shirt dress bicycle computer hospital library
beautiful | island beach city garden castle church dress song horse
interesting | book movie museum story newspaper
long | story letter street river
big | city house tree garden dog hotel
small | kitchen apartment island village garden box key
quiet | street village beach garden hotel
""")

# comparative | French adverb | French adjective | things it may compare
COMPARATIVES = table_rows("""
taller | plus | tall |
richer | plus | rich |
older | plus | aged |
more famous | plus | famous |
less tired | moins | tired |
as tall | aussi | tall |
as happy | aussi | happy |
bigger | plus | big | hotel school church castle museum garden house
older | plus | old | church castle bridge house clock tree
more expensive | plus | expensive | dress coat watch hat shirt
less expensive | moins | expensive | phone computer watch guitar
more interesting | plus | interesting | book movie story newspaper
as beautiful | aussi | beautiful | island beach garden castle
""")

# English tail | French tail: with habits, then with what goes on now
HABITS = table_rows("""
every day | tous les jours
in the morning | le matin
in the evening | le soir
on Mondays | le lundi
in summer | en été
in winter | en hiver
""")
NOW = table_rows("""
now | maintenant
in the garden | dans le jardin
in the kitchen | dans la cuisine
in the park | dans le parc
with my brother | avec mon frère
with the children | avec les enfants
with Anne | avec Anne
under a tree | sous un arbre
""")
HOMES = table_rows("""
in Paris | à Paris
in France | en France
in Canada | au Canada
in this village | dans ce village
in this city | dans cette ville
in an old house | dans une vieille maison
in a small apartment | dans un petit appartement
in a beautiful castle | dans un beau château
in this hotel | dans cet hôtel
near the station | près de la gare
near the school | près de l'école
near the river | près de la rivière
near the hospital | près de l'hôpital
opposite the church | en face de l'église
on an island | sur une île
here | ici
""")
WHEN = table_rows("""
today | aujourd'hui
on Monday | lundi
at eight o'clock | à huit heures
at noon | à midi
with Paul | avec Paul
""")

# English | French (after jouer)
GAMES = table_rows("""
the guitar | de la guitare
the piano | du piano
the harp | de la harpe
soccer | au football
hockey | au hockey
chess | aux échecs
cards | aux cartes
""")
LANGUAGES = {"French": "français", "English": "anglais"}

# mood | tense | form | action | nouns (visit: the; otherwise own)
CAUSES = table_rows("""
sad | past | plain | lose | key dog cat watch umbrella ball
happy | past | plain | find | key dog cat watch hat
worried | can | not | find | key bag phone dog letter
tired | past | not | sleep |
happy | going | plain | visit | castle museum island
proud | past | plain | repair | bicycle car clock computer
worried | past | plain | forget | key bag book phone
""")
