"""Scores of parts of a test set: by the length of the source, and by words that training never showed.

A word is what stands between spaces, compared like sentences are by `corpus.split`: case-folded, its letters and
digits alone ("I'm," is "im"). A mark alone is no word. So a language that sets no spaces has one word a clause.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from passerelle.corpus.split import comparison_keys
from passerelle.evaluation.corpus_statistics import check_texts
from passerelle.evaluation.held_out import HeldOut
from passerelle.evaluation.score_rows import ScoreRow, of_rows, score_row
from passerelle.evaluation.scores import Resampling
from passerelle.parquet import read_parquet

LONGEST = (4, 6, 8, 12)
"""Most words of the sources in each bucket but the last; of 2,000 of fra-eng they hold 473, 747, 449, 263 and 68."""


def buckets(
    hypotheses: Sequence[str], held_out: HeldOut, train_parquet: Path, resampling: Resampling
) -> list[ScoreRow]:
    """A row for each bucket of source lengths, then for sources with a word unseen in training and without.

    Buckets without a sentence are left out. Raises ValueError like `bleu`.
    """
    check_texts(hypotheses, held_out.references)
    words = _words(held_out.sources)
    known = _known_words(train_parquet)
    is_unseen = [not known.issuperset(keys) for keys in words]
    parts = []
    for shortest, longest in zip((0, *(edge + 1 for edge in LONGEST)), (*LONGEST, None), strict=True):
        is_part = [shortest <= len(keys) <= (longest or len(keys)) for keys in words]
        parts.append((*_length_names(shortest, longest), is_part))
    parts.append(("unseen_word", "with a word unseen in training", is_unseen))
    parts.append(("seen_words", "all words seen in training", [not unseen for unseen in is_unseen]))
    rows = []
    for name, meaning, is_part in parts:
        inside = [index for index, is_inside in enumerate(is_part) if is_inside]
        if inside:
            texts = [hypotheses[index] for index in inside]
            references = [held_out.references[index] for index in inside]
            rows.append(score_row(name, meaning, texts, references, of_rows(resampling, inside)))
    return rows


def _length_names(shortest: int, longest: int | None) -> tuple[str, str]:
    """(5, 6) -> ("words_5_to_6", "5 to 6 words")."""
    if not shortest:
        return f"words_to_{longest}", f"up to {longest} words"
    if longest is None:
        return f"words_from_{shortest}", f"{shortest} words or more"
    return f"words_{shortest}_to_{longest}", f"{shortest} to {longest} words"


def _words(sentences: Sequence[str]) -> list[list[str]]:
    """The key of each word of each sentence."""
    spelt = [sentence.split() for sentence in sentences]
    different = list({word for words in spelt for word in words})
    keys = dict(zip(different, comparison_keys(pa.array(different, pa.string())).to_pylist(), strict=True))
    return [[key for word in words if (key := keys[word])] for words in spelt]


def _known_words(train_parquet: Path) -> set[str]:
    """The key of every source word that training shows."""
    sources = read_parquet(train_parquet, ["source"]).column("source")
    spelt = pc.unique(pc.list_flatten(pc.utf8_split_whitespace(sources)))
    return set(comparison_keys(spelt).to_pylist())
