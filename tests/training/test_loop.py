"""The loop: what it reports, when it stops, and that it continues as if it had never stopped."""

import math
from pathlib import Path

import pytest
import torch

from passerelle.training.checkpoint import read_checkpoint
from tiny import VOCAB_SIZE, Name, run, tiny_config


def test_it_reports_after_each_validation_with_the_history_since_the_last(tmp_path: Path) -> None:
    reports, progress = run(tiny_config(max_steps=24, validate_every=12), tmp_path)
    assert [report.step for report in reports] == [12, 24]
    assert [[row["step"] for row in report.history] for report in reports] == [[10, 12], [20, 24]]
    assert all("valid_loss" in report.history[-1] for report in reports)
    assert [(at.step, at.max_steps) for at in progress] == [(10, 24), (12, 24), (20, 24), (24, 24)]


def test_it_validates_at_the_last_step_even_where_that_is_not_a_multiple(tmp_path: Path) -> None:
    reports, _ = run(tiny_config(max_steps=7), tmp_path)
    assert [report.step for report in reports] == [3, 6, 7]


def test_it_learns(tmp_path: Path) -> None:
    reports, _ = run(tiny_config(max_steps=100, validate_every=50, micro_batches_per_step=1), tmp_path)
    first, last = (report.metrics["valid_loss"] for report in reports)
    assert last < first < math.log(VOCAB_SIZE - 4)  # what knowing no more than the words would give


@pytest.mark.parametrize(
    ("name", "optimizer", "stopped_at"),
    [
        ("transformer", "adam", 3),
        ("transformer", "adam", 9),
        ("transformer", "muon", 3),
        ("transformer", "muon", 6),
        ("bahdanau", "muon", 6),
    ],
)
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(
    tmp_path: Path, name: Name, optimizer: str, stopped_at: int
) -> None:
    config = tiny_config(optimizer=optimizer, max_steps=12)
    run(config, tmp_path / "whole", name=name)
    checkpoint = tmp_path / "whole" / str(stopped_at)
    resumed, _ = run(config, tmp_path / "resumed", resume_from=checkpoint, name=name)
    assert [report.step for report in resumed] == list(range(stopped_at + 3, 13, 3))
    expected, expected_facts = read_checkpoint(tmp_path / "whole" / "12")
    found, facts = read_checkpoint(tmp_path / "resumed" / "12")
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in expected)
    for row, expected_row in zip(facts["history"], expected_facts["history"], strict=True):
        measured = ("tokens_per_second",)
        assert all(row[key] == expected_row[key] for key in expected_row if key not in measured)


def test_a_finished_run_that_is_resumed_does_nothing(tmp_path: Path) -> None:
    config = tiny_config()
    run(config, tmp_path / "first")
    assert run(config, tmp_path / "second", resume_from=tmp_path / "first" / "6") == ([], [])


def test_patience_stops_and_is_remembered_across_a_restart(tmp_path: Path) -> None:
    config = tiny_config(
        max_steps=60, learning_rate=3.0, patience=2
    )  # diverges: the first validation stays best
    whole, _ = run(config, tmp_path / "whole")
    steps = [report.step for report in whole]
    assert steps[-1] < 60
    losses = [report.metrics["valid_loss"] for report in whole]
    assert min(losses) == losses[-3]
    resumed, _ = run(config, tmp_path / "resumed", resume_from=tmp_path / "whole" / str(steps[-2]))
    assert [report.step for report in resumed] == steps[-1:]
