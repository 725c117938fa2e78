"""The rows that give a score its scale, against slow and plain ways to the same."""

import random
from collections import Counter
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sacrebleu import corpus_bleu, corpus_chrf

from passerelle.evaluation import sanity as module
from passerelle.evaluation.held_out import HeldOut
from passerelle.evaluation.sanity import (
    Turn,
    nearest_targets,
    sanity_rows,
    turns_against_all,
    turns_against_one,
)
from passerelle.evaluation.scores import Resampling, bleu, chrf_pp

SOURCES = ["We see a boat!", "They hide.", "¿Ça va, Zoé?", "We sell an old clock."]
REFERENCES = [
    ["nous voyons un bateau bleu !", "on voit un bateau bleu !", "nous voyons un bateau vert !"],
    ["ils se cachent ."],
    ["comment ça va , Zoé ?"],
    ["nous vendons une vieille horloge .", "nous vendons une vieille pendule ."],
]
"""All of a sentence are equally long, so that sacreBLEU, which cuts lengths to whole words, cuts nothing."""
HYPOTHESES = ["nous voyons un bateau .", "ils cachent", "ça va Zoé ?", "nous vendons une vieille pendule ."]
GROUPS = ["a", "b", "a", "c"]
HELD_OUT = HeldOut(SOURCES, REFERENCES, GROUPS)
RESAMPLING = Resampling(GROUPS, 100, seed=5)


def write_train(folder: Path, pairs: list[tuple[str, str]]) -> Path:
    sources, targets = zip(*pairs, strict=True)
    pq.write_table(
        pa.table({"source": sources, "target": targets}), folder / "train.parquet", row_group_size=7
    )
    return folder / "train.parquet"


def similarity(one: str, other: str) -> float:
    """Of characters that need not be inserted or deleted, by the textbook's table of common subsequences."""
    previous = [0] * (len(other) + 1)
    for left in one:
        row = [0]
        for column, right in enumerate(other):
            row.append(previous[column] + 1 if left == right else max(previous[column + 1], row[-1]))
        previous = row
    return 2 * previous[-1] / (len(one) + len(other))


def made_up_pairs() -> list[tuple[str, str]]:
    draw = random.Random(2)
    words = ["we", "see", "sell", "a", "boat", "Boats", "clock", "hide", "they", "ça", "Zoé", "?", "!"]
    return [(" ".join(draw.choices(words, k=draw.randint(1, 6))), f"cible {row}") for row in range(150)]


def test_the_memory_answers_with_the_nearest_source_and_its_first_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = made_up_pairs()
    pairs += [(source, f"{target} encore") for source, target in pairs[::3]]
    monkeypatch.setattr(module, "QUERIES_AT_ONCE", 3)
    queries = [*SOURCES, pairs[40][0], pairs[99][0].upper(), "zzz", "boat clock boat"]
    found, num_sources = nearest_targets(queries, write_train(tmp_path, pairs))
    for query, target in zip(queries, found, strict=True):
        likeness = [similarity(query, source) for source, _ in pairs]
        assert target == pairs[likeness.index(max(likeness))][1], query
    assert num_sources == len({source for source, _ in pairs})


def test_a_large_memory_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = write_train(
        tmp_path, [("We hide", "un"), ("We hide", "deux"), ("We", "trois"), ("They hide.", "q")]
    )
    monkeypatch.setattr(module, "MOST_MEMORIES", 2)
    assert nearest_targets(["They hide."], train) == (["un"], 2)
    memory = sanity_rows(HYPOTHESES, HELD_OUT, train, RESAMPLING)[1]
    assert memory.meaning == "the training pair with the nearest source, of 2 different sources"


def test_copy_and_memory_are_scored_like_a_model(tmp_path: Path) -> None:
    train = write_train(
        tmp_path, [("We see a boat.", "nous voyons un bateau !"), ("They hid.", "ils se cachent .")]
    )
    copy, memory = sanity_rows(HYPOTHESES, HELD_OUT, train, RESAMPLING)[:2]
    texts, _ = nearest_targets(SOURCES, train)
    assert (copy.name, memory.name) == ("copy", "memory")
    assert (copy.bleu, copy.chrf_pp) == (
        bleu(SOURCES, REFERENCES, RESAMPLING),
        chrf_pp(SOURCES, REFERENCES, RESAMPLING),
    )
    assert (memory.bleu, memory.chrf_pp) == (
        bleu(texts, REFERENCES, RESAMPLING),
        chrf_pp(texts, REFERENCES, RESAMPLING),
    )
    assert copy.num_sentences == memory.num_sentences == 4
    assert copy.bleu.value < memory.bleu.value


def each_as_often(turns: list[Turn], num_turns: int) -> tuple[list[str], list[list[str]]]:
    """Texts and references of the turns, each sentence's so often that it has that many."""
    count = Counter(turn.sentence for turn in turns)
    repeated = [turn for turn in turns for _ in range(num_turns // count[turn.sentence])]
    return [turn.text for turn in repeated], [turn.references for turn in repeated]


def test_people_and_model_are_held_against_the_same_references(tmp_path: Path) -> None:
    train = write_train(tmp_path, [("We", "nous")])
    rows = {row.name: row for row in sanity_rows(HYPOTHESES, HELD_OUT, train, RESAMPLING)}
    assert list(rows) == ["copy", "memory", "human", "model_for_human", "human_one", "model_for_human_one"]
    for name, turns in (
        ("human", turns_against_all(REFERENCES)),
        ("human_one", turns_against_one(REFERENCES)),
    ):
        model = [replace(turn, text=HYPOTHESES[turn.sentence]) for turn in turns]
        for row, texts, references in (
            (rows[name], *each_as_often(turns, 6)),
            (rows[f"model_for_{name}"], *each_as_often(model, 6)),
        ):
            sets = list(zip_longest(*references))
            assert row.bleu.value == pytest.approx(corpus_bleu(texts, sets).score), row.name
            assert row.chrf_pp.value == pytest.approx(corpus_chrf(texts, sets, word_order=2).score), row.name
            assert row.num_sentences == 2
            assert row.bleu.low <= row.bleu.value <= row.bleu.high
    assert rows["human_one"].bleu.signature.startswith("nrefs:1|")
    assert rows["human"].meaning == "one reference against the others"


def test_the_interval_of_people_is_over_groups_of_sentences(tmp_path: Path) -> None:
    train = write_train(tmp_path, [("We", "nous")])
    one_group = HeldOut(SOURCES, REFERENCES, ["a"] * 4)
    human = sanity_rows(HYPOTHESES, one_group, train, Resampling(["a"] * 4, 100, seed=5))[2]
    assert human.bleu.low == human.bleu.value == human.bleu.high


def test_each_reference_is_taken_once_and_never_against_itself() -> None:
    references = [["a", "b", "a"], ["c"], ["d", "e"]]
    assert turns_against_all(references) == [
        Turn(0, "a", ["b", "a"]),
        Turn(0, "b", ["a", "a"]),
        Turn(0, "a", ["a", "b"]),
        Turn(2, "d", ["e"]),
        Turn(2, "e", ["d"]),
    ]
    assert [turn.references for turn in turns_against_one(references)] == [
        *(["b"], ["a"], ["a"], ["a"], ["a"], ["b"]),
        *(["e"], ["d"]),
    ]
    assert turns_against_all([["a"], ["b"]]) == turns_against_one([["a"], ["b"]]) == []


def test_without_a_second_reference_there_are_no_rows_of_people(tmp_path: Path) -> None:
    train = write_train(tmp_path, [("We", "nous")])
    single = HeldOut(SOURCES, [texts[:1] for texts in REFERENCES], GROUPS)
    assert [row.name for row in sanity_rows(HYPOTHESES, single, train, RESAMPLING)] == ["copy", "memory"]


def test_hypotheses_of_another_test_set_are_refused(tmp_path: Path) -> None:
    train = write_train(tmp_path, [("We", "nous")])
    with pytest.raises(ValueError, match=r"3 hypotheses, but references for 4 sentences"):
        sanity_rows(HYPOTHESES[1:], HELD_OUT, train, RESAMPLING)
