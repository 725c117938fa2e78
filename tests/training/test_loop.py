"""The loop: what it reports, when it stops, and that it continues as if it had never stopped."""

import logging
import math
from pathlib import Path

import pytest
import torch

from passerelle.training import loop
from passerelle.training.checkpoint import read_checkpoint
from passerelle.training.divergence import Diverged
from tiny import VOCAB_SIZE, run, spoilt_steps, tiny_config


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


def test_a_recurrent_model_that_is_resumed_equals_an_uninterrupted_one_bit_for_bit(tmp_path: Path) -> None:
    """`test_resume` shows it of the Transformer, for every step."""
    config = tiny_config(optimizer="muon", max_steps=8)
    run(config, tmp_path / "whole", name="bahdanau")
    run(config, tmp_path / "resumed", resume_from=tmp_path / "whole" / "3", name="bahdanau")
    expected, expected_facts = read_checkpoint(tmp_path / "whole" / "8")
    found, facts = read_checkpoint(tmp_path / "resumed" / "8")
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in expected)
    for row, expected_row in zip(facts["history"], expected_facts["history"], strict=True):
        assert row | {"tokens_per_second": 0} == expected_row | {"tokens_per_second": 0}


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


@pytest.mark.parametrize(("stop_after", "reported"), [(4, [3]), (6, [3, 6]), (1, [])])
def test_a_stop_leaves_one_checkpoint_of_its_step_and_no_more_steps(
    tmp_path: Path, stop_after: int, reported: list[int]
) -> None:
    """After a validation it is the one that was reported."""
    reports, _ = run(tiny_config(max_steps=9), tmp_path, stop_after=stop_after)
    assert [report.step for report in reports] == reported
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == sorted({*reported, stop_after})
    assert read_checkpoint(tmp_path / str(stop_after))[1]["step"] == stop_after


def test_rows_before_a_stop_are_reported_after_it(tmp_path: Path) -> None:
    config = tiny_config(max_steps=24, validate_every=24)
    run(config, tmp_path, stop_after=15)
    (report,), _ = run(config, tmp_path, resume_from=tmp_path / "15")
    assert [row["step"] for row in report.history] == [10, 20, 24]


def test_skipped_steps_are_counted_and_spoil_no_mean(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tiny_config(max_steps=9, max_skipped_steps=3)
    with spoilt_steps({2, 7, 8}), caplog.at_level(logging.WARNING):
        reports, progress = run(config, tmp_path / "spoilt")
    assert [report.metrics["skipped_steps"] for report in reports] == [1, 1, 3]
    assert [note.skipped_steps for note in progress] == [1, 1, 3]
    assert [line.split(":")[0] for line in caplog.messages] == [f"step {step} skipped" for step in (2, 7, 8)]
    assert "loss nan, gradient norm nan" in caplog.messages[0]
    facts = read_checkpoint(tmp_path / "spoilt" / "9")[1]
    assert (facts["skipped_steps"], facts["skipped_in_a_row"]) == (3, 0)
    assert all(math.isfinite(value) for row in facts["history"] for value in row.values())
    run(config, tmp_path / "good")
    good = read_checkpoint(tmp_path / "good" / "9")[1]
    assert facts["num_tokens"] < good["num_tokens"]
    # The first row is the mean of steps 1 and 3; had step 2 been good, it would be of all three.
    assert facts["history"][0]["loss"] == pytest.approx(good["history"][0]["loss"], rel=0.05)
    assert facts["history"][0]["loss"] != good["history"][0]["loss"]


def test_a_row_of_skipped_steps_alone_has_no_loss(tmp_path: Path) -> None:
    with spoilt_steps({4, 5, 6}):
        reports, progress = run(tiny_config(max_skipped_steps=4), tmp_path)
    rows = [row for report in reports for row in report.history]
    assert rows[1].keys() == {"step", "learning_rate", "tokens_per_second", "valid_loss"}
    assert rows[1]["tokens_per_second"] == 0.0
    assert rows[1]["valid_loss"] == rows[0]["valid_loss"]  # nothing has moved
    assert math.isnan(progress[1].loss)


def test_too_many_skipped_steps_in_a_row_stop_training_at_the_last_good_checkpoint(tmp_path: Path) -> None:
    with (
        spoilt_steps({2, *range(5, 20)}),
        pytest.raises(
            Diverged, match=r"^step 7: loss nan, gradient norm nan; so it was in each of the last 3 "
        ),
    ):
        run(tiny_config(max_steps=20, max_skipped_steps=3), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3", "6"]
    run(tiny_config(max_steps=20, max_skipped_steps=3), tmp_path, resume_from=tmp_path / "6", stop_after=7)


@pytest.mark.parametrize("read_late", [(), ("cpu",)], ids=["each", "late"])
def test_results_that_are_read_late_are_counted_as_if_each_had_been(
    read_late: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, which is waited for where a row of the history ends."""
    config = tiny_config(max_steps=24, validate_every=12, optimizer="muon", max_skipped_steps=4)
    run(config, tmp_path / "plain")
    monkeypatch.setattr(loop, "READ_LATE", read_late)
    run(config, tmp_path / "late")
    (plain, plain_facts), (late, facts) = (
        read_checkpoint(tmp_path / name / "24") for name in ("plain", "late")
    )
    assert all(torch.equal(tensor, plain[name]) for name, tensor in late.items())
    for row, plain_row in zip(facts["history"], plain_facts["history"], strict=True):
        assert row | {"tokens_per_second": 0} == plain_row | {"tokens_per_second": 0}
    run(config, tmp_path / "stopped", stop_after=13)
    assert (tmp_path / "stopped" / ("20" if read_late else "13")).is_dir()
    with spoilt_steps({3, 15, 16, 17, 18}), pytest.raises(Diverged, match=r"^step 18: loss nan"):
        run(config, tmp_path / "spoilt")
    assert read_checkpoint(tmp_path / "spoilt" / "12")[1]["skipped_steps"] == 1


def test_the_count_of_skipped_steps_in_a_row_goes_on_behind_a_stop(tmp_path: Path) -> None:
    config = tiny_config(max_steps=20, max_skipped_steps=4)
    with spoilt_steps(range(4, 20)):
        run(config, tmp_path, stop_after=5)
        with pytest.raises(Diverged) as caught:
            run(config, tmp_path, resume_from=tmp_path / "5")
    assert caught.value.step == 7


def test_a_validation_loss_that_is_not_finite_stops_before_a_checkpoint_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([2.5, math.nan])
    monkeypatch.setattr(loop, "validation_loss", lambda *arguments: next(losses))
    with pytest.raises(
        FloatingPointError,
        match=r"step 6: validation loss is nan, .* no checkpoint .*; lower training.learning_rate or lengthen",
    ):
        run(tiny_config(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["3"]
