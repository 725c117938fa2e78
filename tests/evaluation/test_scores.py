"""Scores against sacreBLEU's own command and public functions, and what must be refused."""

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sacrebleu import corpus_bleu, corpus_chrf, corpus_ter

from passerelle.evaluation.corpus_statistics import check_texts
from passerelle.evaluation.scores import (
    Resampling,
    bleu,
    chrf,
    chrf_pp,
    first_references,
    sentence_chrf,
    ter,
)

WORDS = [
    "le",
    "la",
    "un",
    "une",
    "chat",
    "chien",
    "voit",
    "mange",
    "rouge",
    "ici",
    ",",
    "aujourd'hui",
    "ne",
    "pas",
]
ENDS = (".", "\u202f!", "\u202f?", "\u00a0: oui.")


def made_up(num_sentences: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Hypotheses, and one to four references each, some of them close."""
    draw = random.Random(seed)
    hypotheses, references = [], []
    for _ in range(num_sentences):
        words = draw.choices(WORDS, k=draw.randint(1, 9))
        texts = []
        for _ in range(draw.randint(1, 4)):
            changed = [draw.choice(WORDS) if draw.random() < 0.3 else word for word in words]
            texts.append(" ".join(changed[: draw.randint(1, 9)]) + draw.choice(ENDS))
        hypotheses.append(" ".join(words) + draw.choice(ENDS))
        references.append(texts)
    return hypotheses, references


HYPOTHESES, REFERENCES = made_up(57, seed=1)


def resampling(groups: Sequence[str] | int, num_samples: int = 100, seed: int = 7) -> Resampling:
    groups = [str(index) for index in range(groups)] if isinstance(groups, int) else groups
    return Resampling(groups, num_samples, seed)


def command_answers(folder: Path, *options: str) -> list[dict[str, Any]]:
    """What the command says of HYPOTHESES and REFERENCES as files, for each metric.

    It cannot be told of missing references. So each sentence's are repeated until all have twelve, which changes
    neither the best of them nor their mean length.
    """
    padded = [texts * (12 // len(texts)) for texts in REFERENCES]
    paths = [folder / f"references{number}" for number in range(12)]
    for number, path in enumerate(paths):
        path.write_text("".join(f"{texts[number]}\n" for texts in padded), encoding="utf-8")
    (folder / "hypotheses").write_text("\n".join(HYPOTHESES) + "\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        *map(str, paths),
        "-i",
        str(folder / "hypotheses"),
        "-w",
        "6",
    ]
    answer = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    content = json.loads(answer.stdout)
    return content if isinstance(content, list) else [content]


def test_scores_equal_those_of_the_sacrebleu_command(tmp_path: Path) -> None:
    answers = command_answers(tmp_path, "-m", "bleu", "chrf", "ter")
    answers += command_answers(tmp_path, "-m", "chrf", "--chrf-word-order", "2")
    expected = {answer["name"]: answer for answer in answers}
    assert set(expected) == {"BLEU", "chrF2", "TER", "chrF2++"}
    for name, score in (
        ("BLEU", bleu(HYPOTHESES, REFERENCES, resampling(57))),
        ("chrF2", chrf(HYPOTHESES, REFERENCES, resampling(57))),
        ("chrF2++", chrf_pp(HYPOTHESES, REFERENCES, resampling(57))),
        ("TER", ter(HYPOTHESES, REFERENCES, resampling(57))),
    ):
        assert score.value == pytest.approx(expected[name]["score"], abs=1e-6), name
        assert score.signature == expected[name]["signature"].replace("nrefs:12", "nrefs:var")
        assert score.low < score.value < score.high


def test_ter_counts_edits_to_the_nearest_reference_for_the_mean_length_of_those_there_are() -> None:
    # One edit to the first, three to the second, whose mean length is 4; one edit to a reference of 2.
    hypotheses = ["Le chat dort ici", "un chien"]
    references = [["le chat dort", "là le chat a dormi"], ["un chat"]]
    score = ter(hypotheses, references, resampling(2))
    assert score.value == pytest.approx(100 * (1 + 1) / (4 + 2))
    assert score.value == pytest.approx(
        corpus_ter(hypotheses, [["le chat dort", "un chat"], ["là le chat a dormi", None]]).score
    )


def test_first_reference_score_equals_sacrebleu_on_one_file(tmp_path: Path) -> None:
    (tmp_path / "references").write_text("\n".join(texts[0] for texts in REFERENCES), encoding="utf-8")
    (tmp_path / "hypotheses").write_text("\n".join(HYPOTHESES), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "references"), "-w", "6"]
    arguments = ["-i", str(tmp_path / "hypotheses"), "-m", "bleu"]
    answer = json.loads(
        subprocess.run([*command, *arguments], capture_output=True, text=True, check=True).stdout
    )
    score = bleu(HYPOTHESES, first_references(REFERENCES), resampling(57))
    assert score.value == pytest.approx(answer["score"], abs=1e-6)
    assert score.signature == answer["signature"]


def test_signature_says_that_the_number_of_references_varies() -> None:
    assert bleu(HYPOTHESES, REFERENCES, resampling(57)).signature.startswith(
        "nrefs:var|case:mixed|eff:no|tok:13a"
    )
    assert chrf(HYPOTHESES, REFERENCES, resampling(57)).signature.startswith(
        "nrefs:var|case:mixed|eff:yes|nc:6"
    )
    two = [["a", "b"]] * 57
    assert bleu(HYPOTHESES, two, resampling(57)).signature.startswith("nrefs:2|")


def test_a_missing_reference_is_not_an_empty_one() -> None:
    hypotheses, references = ["oui"], [["oui, mais alors pas ici"]]
    score = bleu([*hypotheses, "le chat dort ici"], [*references, ["le chat", "le chat dort"]], resampling(2))
    empty = [["oui, mais alors pas ici", "le chat"], ["", "le chat dort"]]
    missing = [["oui, mais alors pas ici", "le chat"], [None, "le chat dort"]]
    texts = [*hypotheses, "le chat dort ici"]
    assert score.value == pytest.approx(corpus_bleu(texts, missing).score)
    assert score.value != pytest.approx(corpus_bleu(texts, empty).score)


def test_perfect_and_empty_hypotheses_score_100_and_0() -> None:
    texts = [texts[-1] for texts in REFERENCES]
    assert bleu(texts, REFERENCES, resampling(57)).value == pytest.approx(100.0)
    assert chrf(texts, REFERENCES, resampling(57)).value == pytest.approx(100.0)
    assert ter(texts, REFERENCES, resampling(57)).value == 0.0
    one = first_references(REFERENCES)  # of several, the shortest would be nearest to nothing
    assert ter([""] * 57, one, resampling(57)).value == pytest.approx(100.0)
    for score in (bleu([""] * 57, REFERENCES, resampling(57)), chrf([""] * 57, REFERENCES, resampling(57))):
        assert (score.value, score.low, score.high) == (0.0, 0.0, 0.0)


def test_interval_is_what_scoring_the_drawn_groups_gives() -> None:
    groups = [f"group {index % 20}" for index in range(57)]
    score = bleu(HYPOTHESES, REFERENCES, resampling(groups, num_samples=800, seed=3))
    draw = random.Random(11)
    scores = []
    for _ in range(160):
        drawn = [f"group {draw.randrange(20)}" for _ in range(20)]
        rows = [index for group in drawn for index in range(57) if groups[index] == group]
        sets = [[(*REFERENCES[row], *[None] * 4)[number] for row in rows] for number in range(4)]
        scores.append(corpus_bleu([HYPOTHESES[row] for row in rows], sets).score)
    scores.sort()
    assert score.low < score.value < score.high
    assert score.low == pytest.approx(scores[4], abs=2.0)
    assert score.high == pytest.approx(scores[155], abs=2.0)


def test_sentences_of_one_group_are_drawn_together() -> None:
    hypotheses, references = HYPOTHESES * 4, REFERENCES * 4
    alone = bleu(hypotheses, references, resampling(228))
    together = bleu(hypotheses, references, resampling([str(index % 57) for index in range(228)]))
    once = bleu(HYPOTHESES, REFERENCES, resampling(57))
    assert together.value == pytest.approx(alone.value)
    assert together.high - together.low == pytest.approx(once.high - once.low, rel=0.5)
    assert alone.high - alone.low < 0.7 * (together.high - together.low)


def test_the_same_seed_gives_the_same_interval() -> None:
    one, same, other = (bleu(HYPOTHESES, REFERENCES, resampling(57, seed=seed)) for seed in (1, 1, 2))
    assert one == same
    assert (one.low, one.high) != (other.low, other.high)
    assert resampling(["a", "b", "a"]).describe() == "interval:95%|bootstrap:100|over:2 groups|seed:7"


def test_sentence_scores_are_those_of_one_sentence_alone() -> None:
    scores = sentence_chrf(HYPOTHESES, REFERENCES)
    for score, hypothesis, texts in zip(scores, HYPOTHESES, REFERENCES, strict=True):
        assert score == pytest.approx(corpus_chrf([hypothesis], [[text] for text in texts]).score)


def test_transposed_references_are_refused() -> None:
    transposed = [[texts[0] for texts in REFERENCES], [texts[-1] for texts in REFERENCES]]
    with pytest.raises(
        ValueError, match=r"57 hypotheses, but references for 2 sentences; they look transposed"
    ):
        bleu(HYPOTHESES, transposed, resampling(57))


def test_counts_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match=r"57 hypotheses, but references for 56 sentences$"):
        chrf(HYPOTHESES, REFERENCES[1:], resampling(57))
    with pytest.raises(ValueError, match=r"57 hypotheses, but groups for 3 sentences"):
        bleu(HYPOTHESES, REFERENCES, resampling(3))


@pytest.mark.parametrize("texts", ["un chat", [], [None], ["oui", 3]])
def test_a_sentence_without_a_list_of_texts_is_refused(texts: object) -> None:
    with pytest.raises(ValueError, match=r"references of sentence 1: expected a list of at least one text"):
        check_texts(["a", "b"], [["a"], texts])  # type: ignore[list-item]


@pytest.mark.parametrize("hypotheses", [[], "un chat"])
def test_nothing_to_score_is_refused(hypotheses: Sequence[str]) -> None:
    with pytest.raises(ValueError, match=r"nothing to score"):
        check_texts(hypotheses, [])
