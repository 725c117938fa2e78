"""The spaces around `? ! : ; « »`: one uniform form for training, the printed form for readers.

French sets a space before `? ! : ;` and inside « », and it must not break across lines: a narrow one
(U+202F) before `? ! ;`, a full one (U+00A0) before `:` and inside « ». Corpora mix these with plain spaces
and with none. Training sees a plain space everywhere; `restore_typography` gives translations the printed
form back. Other languages set no space there.

A mark counts only at the end of a word: `12:30`, `http://…?q=1`, `&amp;` and `:D` are left alone. A run such
as `?!` or `!!` is one mark. No space goes between an opening bracket or an opening quote and a mark: `(?)`.
"""

import re
from collections.abc import Sequence

FRENCH = frozenset({"fr", "fra", "fre"})

# Possessive quantifiers keep a run in one piece: in `std::x` the first colon is not the end of a word. A run that is
# no mark is passed over as a whole (`no_mark`), since looking at each of its parts would take the square of the time.
_SIGNS = r"[?!](?:\ ?[?!])*+"
_RUN = rf"(?:{_SIGNS}|:++|;++)"
_FRENCH_MARK = re.compile(
    r"(?P<left_alone>://[^\s»\"]+|&\#?\w+;)"
    r"|(?P<time>(?<=\d)\ :(?=\d))"
    r"|(?P<opening>«\ ?)"
    rf"|\ ?(?P<mark>»|{_RUN}(?=$|[\s\"'«»)\]}},.…?!;:]))"
    rf"|(?P<no_mark>{_SIGNS}|(?::(?!//))++|;++)"
)
# A colon or semicolon before a bracket is a smiley here, and keeps its space.
_SPACED_RUN = re.compile(
    rf"\ ?(?P<mark>{_SIGNS}(?=$|[\s\"'«»)\]}},.…;:])|[:;]++(?=$|[\s\"'«»,.…?!]))|(?P<no_mark>{_SIGNS}|[:;]++)"
)
_ANY_MARK = re.compile("[?!:;«»]")
_SPACED_MARK = re.compile(r"«\s*|\s*»|\s*(?:[?!](?:\s*[?!])*|[:;])")


def space_marks(text: str, language: str) -> str:
    """`text`, whose spaces are single and plain, with uniform plain spaces around its marks.

    French: exactly one space before `? ! : ; »` and after `«`. Other languages: none before `? ! : ;`.
    """
    if not _ANY_MARK.search(text):
        return text
    if language in FRENCH:
        return _FRENCH_MARK.sub(_respaced, text).rstrip(" ")
    return _SPACED_RUN.sub(lambda match: match["no_mark"] or match["mark"].replace(" ", ""), text)


def restore_typography(text: str, language: str) -> str:
    """Cleaned `text` with the no-break spaces that French prints; other languages are returned unchanged.

    It changes spaces into other spaces only, so cleaning the result gives `text` back.
    """
    if language not in FRENCH:
        return text
    for mark in "?!;":
        text = text.replace(f" {mark}", f"\u202f{mark}")
    for mark in ":»":
        text = text.replace(f" {mark}", f"\u00a0{mark}")
    return text.replace("« ", "«\u00a0")


def typography_accuracy(texts: Sequence[str], language: str) -> float:
    """Share of the marks `? ! : ; « »` in `texts` whose spacing is right; 1.0 where there is no mark.

    A run such as `?!` counts once. Right is what `restore_typography` of the cleaned text shows, U+202F and
    U+00A0 being taken for the same. BLEU cannot see these spaces.
    """
    total = right = 0
    for text in texts:
        plain = " ".join(text.split())
        found = _SPACED_MARK.findall(text.replace("\u202f", "\u00a0"))
        expected = restore_typography(space_marks(plain, language), language).replace("\u202f", "\u00a0")
        total += len(found)
        right += sum(map(str.__eq__, found, _SPACED_MARK.findall(expected)))
    return right / total if total else 1.0


def _respaced(match: re.Match[str]) -> str:
    if match["left_alone"] or match["no_mark"]:
        return match[0]
    if match["time"]:
        return ":"
    if match["opening"]:
        return "« "
    mark = match["mark"].replace(" ", "")
    return mark if _needs_no_space(match.string, match.start(), match[0][0] == " ") else f" {mark}"


def _needs_no_space(text: str, start: int, has_space: bool) -> bool:
    """Whether the mark at `start` (with its own space, if it has one) follows something that opens."""
    if start == 0 or text[start - 1] in " «([":  # the space here is the one that « took
        return True
    follows_quote = text[start - 1] in "\"'" and not has_space
    return follows_quote and (start == 1 or text[start - 2] in " «([")
