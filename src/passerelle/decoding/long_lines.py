"""Cutting a text that is too long for a model into its sentences, and where these are still too long, at words."""

import re
from collections.abc import Callable

# A mark ends a sentence where a space follows; the full-width ones of Chinese and Japanese need none. A run of marks
# is read in one way only, from its beginning: it may be long.
_MARKS = ".!?…؟।॥։"
_END = re.compile(
    rf"""(?<![{_MARKS}])[{_MARKS}]++(?: [!?]++)*["')\]”’]*+(?: ?»)*(?= )|[。！？｡]+[」』）”’]*(?=.)"""
)
_LAST_WORD = re.compile(r"[^\W\d_]+$")
_OPENING = " \"'«“‘(["
_TITLES = frozenset({"Mr", "Mrs", "Ms", "Dr", "Prof", "St", "M", "MM", "Mme", "Mlle"})
_LONGEST_TITLE = max(map(len, _TITLES))


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Pieces of `text` in order, each of which fits: its sentences, and of one that does not fit the halves.

    text is cleaned (`corpus.clean`), so its spaces are single and plain; those between pieces are left out. A
    sentence is halved at the space nearest to its middle, a word without one at its middle. One character alone is
    a piece, whether it fits or not.
    """
    if fits(text):
        return [text]
    pieces = sentences(text)
    if len(pieces) == 1:
        pieces = _halves(text)
    if len(pieces) == 1:
        return pieces
    return [part for piece in pieces for part in split_text(piece, fits)]


def sentences(text: str) -> list[str]:
    """The sentences of cleaned `text`, with their marks: they end at `. ! ? …` and their kin in other scripts.

    A small letter behind the mark (in a text that has capitals), or before a period a title such as `Mr` or a
    single capital, means that the sentence goes on.
    """
    has_capitals = text != text.lower()
    pieces, start = [], 0
    for match in _END.finditer(text):
        following = text[match.end() : match.end() + 4].lstrip(_OPENING)
        before = text[max(start, match.start() - _LONGEST_TITLE - 1) : match.start()]
        if (has_capitals and following[:1].islower()) or (match[0] == "." and _is_abbreviated(before)):
            continue
        pieces.append(text[start : match.end()].strip())
        start = match.end()
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def _is_abbreviated(text: str) -> bool:
    word = _LAST_WORD.search(text)
    return word is not None and (word[0] in _TITLES or (len(word[0]) == 1 and word[0].isupper()))


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    spaces = [place for place in (text.rfind(" ", 0, middle), text.find(" ", middle)) if place > 0]
    if spaces:
        place = min(spaces, key=lambda space: abs(space - middle))
        return [text[:place], text[place + 1 :]]
    return [text[:middle], text[middle:]] if middle else [text]
