"""What a report shows of an evaluation."""

import json
from pathlib import Path

import pytest

from passerelle.evaluation.report.content import ShownTranslation
from passerelle.evaluation.report.selection import best_worst_random, corpus_tables, training_curves

SCORES = [50.0, 10.0, 90.0, 10.0, 70.0]
ROWS = [ShownTranslation(number, f"s{number}", "h", ("r",), score) for number, score in enumerate(SCORES)]
TRAINING = "step,loss,learning_rate\n10,9.5,0.001\n20,8.5,0.002\n"


def test_lists_are_in_order_and_equals_in_that_of_the_test_set() -> None:
    lists = best_worst_random(ROWS, 3, seed=0)
    assert [row.number for row in lists["Best"]] == [2, 4, 0]
    assert [row.number for row in lists["Worst"]] == [1, 3, 0]


def test_random_ones_are_the_same_for_another_model() -> None:
    other = [ShownTranslation(row.number, row.source, "x", ("r",), 100 - row.score) for row in ROWS]
    drawn = [row.number for row in best_worst_random(ROWS, 3, seed=4)["Random"]]
    assert drawn == [row.number for row in best_worst_random(other, 3, seed=4)["Random"]]
    assert drawn == sorted(set(drawn))
    assert len(drawn) == 3


def test_a_short_test_set_is_shown_whole() -> None:
    assert {len(rows) for rows in best_worst_random(ROWS, 50, seed=0).values()} == {5}


def test_curves_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "training.csv").write_text(TRAINING)
    (tmp_path / "validation.csv").write_text("step,valid_loss,valid_bleu\n20,7.5,12.5\n")
    loss, bleu, rate = training_curves(tmp_path / "training.csv", tmp_path / "validation.csv")
    assert loss.series == {"training": [(10, 9.5), (20, 8.5)], "validation": [(20, 7.5)]}
    assert bleu.series == {"validation": [(20, 12.5)]}
    assert rate.series == {"training": [(10, 0.001), (20, 0.002)]}


def test_without_bleu_there_is_no_curve_of_it(tmp_path: Path) -> None:
    (tmp_path / "training.csv").write_text(TRAINING)
    (tmp_path / "validation.csv").write_text("step,valid_loss\n20,7.5\n")
    curves = training_curves(tmp_path / "training.csv", tmp_path / "validation.csv")
    assert [curve.title for curve in curves] == ["Loss", "Learning rate"]


def test_missing_or_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"training.csv: no such file; run stage train first"):
        training_curves(tmp_path / "training.csv", tmp_path / "validation.csv")
    (tmp_path / "training.csv").write_text("step,loss\n")
    with pytest.raises(
        ValueError, match=r"training.csv: expected a column step and rows; run stage train again"
    ):
        training_curves(tmp_path / "training.csv", tmp_path / "validation.csv")


def test_counts_and_rejections_are_those_of_the_file(tmp_path: Path) -> None:
    splits = {name: {"rows": 9, "sentences": 7, "references": 8} for name in ("train", "valid", "test")}
    rejected = {"total": 5, "too long": 1, "empty line": 0, "duplicate pair": 4}
    counts = {"read": 32, "kept": 27, "rejected": rejected, "groups": 20, "largest_group": 3, **splits}
    (tmp_path / "corpus.json").write_text(json.dumps(counts))
    sizes, reasons = corpus_tables(tmp_path / "corpus.json")
    assert sizes.rows == (("train", 9, 7, 8), ("valid", 9, 7, 8), ("test", 9, 7, 8))
    assert sizes.note.startswith("32 lines were read and 27 kept.")
    assert (reasons.title, reasons.rows) == ("5 rejected", (("duplicate pair", 4), ("too long", 1)))
    assert reasons.note == "Looked for, and not found: empty line."
    with pytest.raises(ValueError, match=r"absent.json: no such file; run stage prepare first"):
        corpus_tables(tmp_path / "absent.json")
