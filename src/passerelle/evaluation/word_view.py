"""Attention between words: the weights of sub-word pieces merged as Clark et al. (2019, section 4.1) do.

What a query gives to the pieces of a word adds up; the pieces of a querying word are averaged. So each row still
sums to one. A word is what stands between spaces, with the marks that touch it; `<s>` and `</s>` are words too.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from passerelle.data.subwords import SPACE_MARK
from passerelle.evaluation.attention_maps import AttentionMap
from passerelle.evaluation.plots import readable

ENDS = ("<s>", "</s>")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


@dataclass(frozen=True)
class Words:
    """The words that a row of pieces makes."""

    texts: tuple[str, ...]
    """(W,), the words; a space that begins no word is `␣`."""
    word_of: NDArray[np.int64]
    """(T,), the word that each piece belongs to; it rises by 0 or 1."""


@dataclass(frozen=True)
class View:
    """One kind of attention, with the names of its rows and columns."""

    queries: tuple[str, ...]
    """(Q,)"""
    keys: tuple[str, ...]
    """(K,)"""
    weights: NDArray[np.float32]
    """(L, H, Q, K); each row sums to one."""


def piece_view(attention: AttentionMap, kind: str) -> View:
    """As the model saw it. Rows of cross-attention are named after the piece that was chosen there."""
    queries, keys = _axes(attention, kind)
    return View(tuple(readable(queries)), tuple(readable(keys)), attention.weights[kind])


def word_view(attention: AttentionMap, kind: str) -> View:
    """Between words. Rows of cross-attention are words of the translation, their pieces those chosen."""
    are_words = not attention.source_tokens[0].startswith(SPACE_MARK)  # sub-words begin every text with it
    queries, keys = (words_of(pieces, are_words=are_words) for pieces in _axes(attention, kind))
    return View(queries.texts, keys.texts, merge(attention.weights[kind], queries, keys))


def words_of(pieces: Sequence[str], *, are_words: bool) -> Words:
    """The words of pieces; are_words: each piece is one, as a tokenizer of words gives them."""
    begins = [
        are_words
        or piece.startswith(SPACE_MARK)
        or piece in ENDS
        or (number > 0 and pieces[number - 1] in ENDS)
        for number, piece in enumerate(pieces)
    ]
    begins[:1] = [True]
    word_of = np.cumsum(begins) - 1
    groups: list[list[str]] = [[] for _ in range(sum(begins))]
    for word, piece in zip(word_of.tolist(), pieces, strict=True):
        groups[word].append(piece)
    return Words(tuple(group[0] if are_words else _text(group) for group in groups), word_of)


def merge(weights: NDArray[np.float32], queries: Words, keys: Words) -> NDArray[np.float32]:
    """weights (..., Q, K) of pieces -> of words: keys of a word summed, its queries averaged."""
    rows = _members(queries)
    rows /= rows.sum(1, keepdims=True)
    merged = rows @ weights.astype(np.float64) @ _members(keys).T
    return merged.astype(np.float32)


def _axes(attention: AttentionMap, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The pieces of queries and keys."""
    return {
        "encoder": (attention.source_tokens, attention.source_tokens),
        "decoder_self": (attention.target_tokens, attention.target_tokens),
        "cross": (attention.predicted_tokens, attention.source_tokens),
    }[kind]


def _members(words: Words) -> NDArray[np.float64]:
    """(W, T), 1 where a piece belongs to a word."""
    return (np.arange(len(words.texts))[:, None] == words.word_of).astype(np.float64)


def _text(pieces: Sequence[str]) -> str:
    """The text of one word; bytes are joined to characters, where they make one."""
    raw = b"".join(
        bytes.fromhex(found[1])
        if (found := _BYTE.fullmatch(piece))
        else piece.replace(SPACE_MARK, "").encode()
        for piece in pieces
    )
    return raw.decode(errors="replace") or "␣"
