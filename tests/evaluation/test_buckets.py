"""Scores by source length and by unseen words, against the scores of sentences picked by hand."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from passerelle.evaluation.buckets import buckets
from passerelle.evaluation.held_out import HeldOut
from passerelle.evaluation.score_rows import ScoreRow
from passerelle.evaluation.scores import Resampling, bleu, chrf_pp

SOURCES = [
    "Go on.",  # 2 words, all seen
    "We see a boat !",  # 4 words and a mark
    "We see\u00a0a boat , don't we ?",  # 6 words, one of them with an apostrophe
    "They hide a zebra from us all today.",  # 8 words, one unseen
    "- ! -",  # none
    "We see a boat, a boat, a boat, a boat, a boat, today.",  # 13 words
    "GO, zebras.",  # 2 words, one unseen
]
REFERENCES = [
    ["continue donc alors ici", "vas-y donc alors ici"],
    ["nous voyons un bateau"],
    ["nous voyons un bateau , non ?", "on voit un bateau , non ?", "un bateau"],
    ["ils nous cachent un zèbre aujourd'hui"],
    ["- ! - ! -"],
    ["nous voyons un bateau , un bateau , un bateau"],
    ["partez , les zèbres , partez"],
]
HYPOTHESES = [
    "continue alors donc ici",
    "nous voyons un bateau bleu",
    "on voit un bateau , oui ?",
    "ils cachent un zèbre aujourd'hui",
    "- ! - -",
    "nous voyons un bateau , un bateau",
    "partez , les lions , partez",
]
GROUPS = ["a", "b", "a", "c", "d", "e", "c"]
RESAMPLING = Resampling(GROUPS, 100, seed=5)
HELD_OUT = HeldOut(SOURCES, REFERENCES, GROUPS)
TRAINING = ["go on, we see", "A boat? Dont", "They hide from us all.", "'today' 'today'"]


@pytest.fixture
def train(tmp_path: Path) -> Path:
    table = pa.table({"source": TRAINING, "target": ["oui"] * len(TRAINING)})
    pq.write_table(table, tmp_path / "train.parquet", row_group_size=2)
    return tmp_path / "train.parquet"


def by_name(rows: list[ScoreRow]) -> dict[str, ScoreRow]:
    assert len({row.name for row in rows}) == len(rows)
    return {row.name: row for row in rows}


@pytest.mark.parametrize(
    ("name", "meaning", "inside"),
    [
        ("words_to_4", "up to 4 words", [0, 1, 4, 6]),
        ("words_5_to_6", "5 to 6 words", [2]),
        ("words_7_to_8", "7 to 8 words", [3]),
        ("words_from_13", "13 words or more", [5]),
        ("unseen_word", "with a word unseen in training", [3, 6]),
        ("seen_words", "all words seen in training", [0, 1, 2, 4, 5]),
    ],
)
def test_a_bucket_has_the_scores_of_its_sentences_alone(
    name: str, meaning: str, inside: list[int], train: Path
) -> None:
    row = by_name(buckets(HYPOTHESES, HELD_OUT, train, RESAMPLING))[name]
    texts, references = [HYPOTHESES[i] for i in inside], [REFERENCES[i] for i in inside]
    resampling = Resampling([GROUPS[i] for i in inside], 100, seed=5)
    assert (row.meaning, row.num_sentences) == (meaning, len(inside))
    assert row.bleu == bleu(texts, references, resampling)
    assert row.chrf_pp == chrf_pp(texts, references, resampling)


def test_each_sentence_is_in_one_length_and_seen_or_not(train: Path) -> None:
    rows = by_name(buckets(HYPOTHESES, HELD_OUT, train, RESAMPLING))
    lengths = [row.num_sentences for name, row in rows.items() if name.startswith("words_")]
    assert sum(lengths) == rows["unseen_word"].num_sentences + rows["seen_words"].num_sentences == 7


def test_a_bucket_without_sentences_is_left_out(train: Path) -> None:
    held_out = HeldOut(SOURCES[:1], REFERENCES[:1], GROUPS[:1])
    rows = buckets(HYPOTHESES[:1], held_out, train, Resampling(GROUPS[:1], 100, seed=5))
    assert [row.name for row in rows] == ["words_to_4", "seen_words"]


def test_hypotheses_of_another_test_set_are_refused(train: Path) -> None:
    with pytest.raises(ValueError, match=r"6 hypotheses, but references for 7 sentences"):
        buckets(HYPOTHESES[1:], HELD_OUT, train, RESAMPLING)
