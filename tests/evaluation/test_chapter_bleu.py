"""The chapter's BLEU against values computed by hand, and sacreBLEU of a sentence against its command."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passerelle.evaluation.chapter_bleu import chapter_bleu, sentence_bleu


@pytest.mark.parametrize(
    ("prediction", "label", "k", "score"),
    [
        ("va !", "va !", 2, 1.0),
        # Four of five words, two of four pairs.
        ("il est tombé ici .", "il est calme ici .", 2, (4 / 5) ** 0.5 * (2 / 4) ** 0.25),
        # The chapter's own miss: three of four words, one of three pairs.
        ("il est mouillé .", "il est calme .", 2, 0.6580370),
        # Too short: exp(1 - 5/3), all words and pairs right.
        ("je suis chez", "je suis chez moi .", 2, math.exp(1 - 5 / 3)),
        # Too long is not punished but by precision: 5 of 7 words, 4 of 6 pairs, 3 of 5 triples.
        ("je suis chez moi . . .", "je suis chez moi .", 3,
         (5 / 7) ** 0.5 * (4 / 6) ** 0.25 * (3 / 5) ** 0.125),
        # A word counts as often as the label has it: 2 of 4, and one pair of 3.
        ("a a a a", "a a b", 2, (2 / 4) ** 0.5 * (1 / 3) ** 0.25),
        # Right words, no pair right: nothing.
        ("moi chez suis je", "je suis chez moi", 2, 0.0),
        ("moi chez suis je", "je suis chez moi", 1, 1.0),
        ("non", "va !", 2, 0.0),
    ],
)  # fmt: skip
def test_values_computed_by_hand(prediction: str, label: str, k: int, score: float) -> None:
    assert chapter_bleu(prediction, label, k) == pytest.approx(score, abs=1e-7)


def test_a_prediction_shorter_than_k_is_judged_by_the_n_grams_it_has() -> None:
    assert chapter_bleu("va", "va !") == pytest.approx(math.exp(-1))
    assert chapter_bleu("va", "va", k=4) == 1.0
    assert chapter_bleu("va !", "va !", k=4) == 1.0


def test_nothing_predicted_scores_nothing() -> None:
    assert chapter_bleu("", "va !") == 0.0
    assert chapter_bleu("  ", "") == 0.0
    assert chapter_bleu("va", "") == 0.0


words = st.lists(st.sampled_from("abc"), max_size=9).map(" ".join)


@given(words, words, st.integers(1, 5))
def test_scores_lie_between_0_and_1_and_only_equal_texts_reach_1_with_long_n_grams(
    prediction: str, label: str, k: int
) -> None:
    score = chapter_bleu(prediction, label, k)
    assert 0.0 <= score <= 1.0
    if prediction:
        assert chapter_bleu(prediction, prediction, k) == 1.0
        assert (chapter_bleu(prediction, label, 9) == 1.0) == (prediction == label)


def test_sentences_score_as_by_the_sacrebleu_command(tmp_path: Path) -> None:
    hypotheses = ["Il est chez moi.", "Va\u202f!", "Je suis chez moi, je crois.", "Je suis", ""]
    (tmp_path / "references").write_text("Je suis chez moi.\n" * len(hypotheses), encoding="utf-8")
    (tmp_path / "hypotheses").write_text("\n".join(hypotheses) + "\n", encoding="utf-8")
    files = [str(tmp_path / "references"), "-i", str(tmp_path / "hypotheses")]
    command = [sys.executable, "-m", "sacrebleu", *files, "-m", "bleu", "-sl", "-w", "6"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = [float(line.split(" = ")[1].split()[0]) for line in answer.stdout.splitlines()]
    found = [sentence_bleu(hypothesis, ["Je suis chez moi."]) for hypothesis in hypotheses]
    assert found == pytest.approx(expected, abs=1e-6)
    assert 0.0 < min(found[0], found[2]) < max(found[0], found[2]) < 100.0
