"""One spelling for each character of a sentence, so that a model meets no accidental variants.

What cleaning does, visibly and for every language:
- Unicode NFC;
- every kind of space (no-break, thin, tab, line separator …) becomes one plain space; none at the ends;
- invisible characters go: zero-width space, soft hyphen, byte order mark, direction marks, controls. Joiners
  stay between emoji and inside scripts that need them; variation selectors and flags of tags stay;
- curly quotes become straight, the ellipsis becomes three dots;
- a Cyrillic or Greek letter that looks Latin, in a word that is mostly Latin, becomes the Latin one;
- the spaces around punctuation become uniform (see `typography`).

Cleaning a cleaned text changes nothing. Dashes, guillemets, digits and symbols stay as they are.
"""

import re
import unicodedata

from passerelle.corpus.typography import space_marks

_SPACES = "\t\n\v\f\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0001"
)
_QUOTES = {"'": "‘’‚‛ʼ＇", '"': "“”„‟＂", "...": "…"}
_JOINERS = "\u200c\u200d"
_JOINED = "[\u0590-\u1cff\u2190-\u2bff\ufe0e\ufe0f\U0001f000-\U0001faff]"
_TAGS = "\U000e0020-\U000e007f"
_LOOKALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧο",
    "ABESIJKMHOPCTYXaesijopcyxdqwABEZHIKMNOPTYXo",
)


def _expand(characters: str) -> str:
    """The characters that a regular-expression class such as `a-cx` stands for."""
    ranges = re.findall("(.)-(.)|(.)", characters, re.DOTALL)
    return "".join(one or "".join(map(chr, range(ord(low), ord(high) + 1))) for low, high, one in ranges)


_REPLACED = str.maketrans(
    {
        **dict.fromkeys(_expand(_INVISIBLE), ""),
        **dict.fromkeys(_expand(_SPACES), " "),
        **{variant: plain for plain, variants in _QUOTES.items() for variant in variants},
    }
)
_PLAIN_WORD = "[!-~\u00a1-\u00ac\u00ae-\u0236]+"
_PLAIN = re.compile(f"{_PLAIN_WORD}(?: {_PLAIN_WORD})*")
_STRAY = re.compile(
    f"(?<!{_JOINED})[{_JOINERS}]+|[{_JOINERS}]+(?!{_JOINED})|(?<![\U0001f3f4{_TAGS}])[{_TAGS}]+"
)
_WORD = re.compile("[\\w'\u0300-\u036f]+")
_LATIN = re.compile("[A-Za-zÀ-ÖØ-öø-\u024f]")
_NOT_LATIN = re.compile("[\u0370-\u03ff\u0400-\u052f]")


def clean_text(text: str, language: str) -> str:
    """The uniform form of `text` that models are trained on; `language` chooses the punctuation's spacing."""
    # Nearly all sentences are plain words between single spaces; for them this is one match.
    if not _PLAIN.fullmatch(text):
        text = _without_variants(text)
    return space_marks(text, language)


def _without_variants(text: str) -> str:
    text = unicodedata.normalize("NFC", text.translate(_REPLACED))
    text = unicodedata.normalize("NFC", _STRAY.sub("", text))
    if _NOT_LATIN.search(text):
        text = unicodedata.normalize("NFC", _WORD.sub(_without_lookalikes, text))
    return " ".join(text.split())


def _without_lookalikes(match: re.Match[str]) -> str:
    """The word in Latin letters, where it is mostly Latin and all its foreign letters look Latin."""
    word = match[0]
    num_foreign = len(_NOT_LATIN.findall(word))
    if num_foreign == 0 or num_foreign >= len(_LATIN.findall(word)):
        return word
    latin = word.translate(_LOOKALIKES)
    return word if _NOT_LATIN.search(latin) else latin
