"""Scores that give a model's score a scale: no translation, a translation memory, and people.

In the whole of fra-eng, a French version drawn at random scores BLEU 47.4 against one other of its sentence, and 52.4
against all others; of the 581 test sentences that have several, people score 47.0 and 51.9 as measured here.
Spaces of typography are as the corpus has them: no score here sees them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from passerelle.evaluation.corpus_statistics import References, check_texts, statistics
from passerelle.evaluation.held_out import HeldOut
from passerelle.evaluation.score_rows import ScoreRow, of_rows, score_row
from passerelle.evaluation.scores import METRICS, Resampling, score_of_counts
from passerelle.parquet import read_parquet

MOST_MEMORIES = 500_000
"""Different training sources that a sentence is compared with, the first ones; the row says so."""
QUERIES_AT_ONCE = 64
"""They bound the memory: 4 bytes for each of them and of the training sources."""


def sanity_rows(
    hypotheses: Sequence[str], held_out: HeldOut, train_parquet: Path, resampling: Resampling
) -> list[ScoreRow]:
    """Rows to hold beside the score of `hypotheses`, a model's.

    `copy` and `memory` have all sentences, like that score. `human` is people's: a reference against the sentence's
    other ones, `human_one` against one of the others, where there are others. Every reference and every other one
    has its turn, and a sentence counts once however many it has. `model_for_human` and `model_for_human_one` are the
    model in their place, so that these compare. The last four are left out where no sentence has two references.
    Raises ValueError like `bleu`.
    """
    check_texts(hypotheses, held_out.references)
    memory, num_memories = nearest_targets(held_out.sources, train_parquet)
    meaning = f"the training pair with the nearest source, of {num_memories:,} different sources"
    rows = [
        score_row("copy", "the source, untranslated", held_out.sources, held_out.references, resampling),
        score_row("memory", meaning, memory, held_out.references, resampling),
    ]
    for suffix, against, turns in (
        ("", "the others", turns_against_all(held_out.references)),
        ("_one", "one other", turns_against_one(held_out.references)),
    ):
        if turns:
            model = [replace(turn, text=hypotheses[turn.sentence]) for turn in turns]
            rows += [
                _row_of_turns(f"human{suffix}", f"one reference against {against}", turns, resampling),
                _row_of_turns(f"model_for_human{suffix}", "the model in its place", model, resampling),
            ]
    return rows


def nearest_targets(sources: Sequence[str], train_parquet: Path) -> tuple[list[str], int]:
    """The target of the training pair whose source is most like each source, and how many sources were compared.

    Alike is what needs few characters inserted and deleted, for the length of both (rapidfuzz's
    `Indel.normalized_similarity`). Of several such pairs it is the first.
    """
    table = read_parquet(train_parquet, ["source", "target"])
    known = pc.unique(table["source"])[:MOST_MEMORIES]  # in the order of their first rows
    first_rows = pc.index_in(known, table["source"])
    choices = known.to_pylist()
    nearest: list[int] = []
    for start in range(0, len(sources), QUERIES_AT_ONCE):
        queries = sources[start : start + QUERIES_AT_ONCE]
        alike = cdist(queries, choices, scorer=Indel.normalized_similarity, dtype=np.float32, workers=-1)
        nearest += alike.argmax(axis=1).tolist()  # the first of equals
    rows = first_rows.take(pa.array(nearest, pa.int64()))
    return table["target"].take(rows).to_pylist(), len(choices)


@dataclass(frozen=True)
class Turn:
    """A text held against references of a sentence."""

    sentence: int
    text: str
    references: list[str]


def turns_against_all(references: References) -> list[Turn]:
    """Each reference that has others, against all of them."""
    return [
        Turn(sentence, text, [*texts[:number], *texts[number + 1 :]])
        for sentence, texts in enumerate(references)
        for number, text in enumerate(texts)
        if len(texts) > 1
    ]


def turns_against_one(references: References) -> list[Turn]:
    """Each reference that has others, against each of them alone."""
    return [
        Turn(turn.sentence, turn.text, [other])
        for turn in turns_against_all(references)
        for other in turn.references
    ]


def _row_of_turns(name: str, meaning: str, turns: Sequence[Turn], resampling: Resampling) -> ScoreRow:
    """The mean of a sentence's turns stands for the sentence."""
    sentences, position = np.unique([turn.sentence for turn in turns], return_inverse=True)
    texts, references = [turn.text for turn in turns], [turn.references for turn in turns]
    scores = []
    for metric in (METRICS["BLEU"](), METRICS["chrF++"]()):
        counts = statistics(metric, texts, references)
        means = np.zeros((len(sentences), counts.shape[1]))
        np.add.at(means, position, counts)
        means /= np.bincount(position)[:, None]
        scores.append(score_of_counts(metric, means, of_rows(resampling, sentences)))
    return ScoreRow(name, meaning, len(sentences), *scores)
