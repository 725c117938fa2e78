"""Which checkpoints are kept and averaged, and what a finished run leaves."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from passerelle.config import LanguagesConfig, ModelConfig, TrainingConfig, TrainParams
from passerelle.model_folder import training_sentences
from passerelle.training.checkpoint import (
    checkpoint_folders,
    checkpoint_name,
    checkpoint_step,
    latest_checkpoint,
    read_facts,
    save_checkpoint,
    write_checkpoint,
)
from passerelle.training.publish import (
    average_weights,
    is_run_finished,
    prune_checkpoints,
    publish,
    steps_to_average,
)
from tiny import VOCAB_SIZE, run, spoilt_steps, tiny_config, tiny_pairs

LOSSES = {10: 5.0, 20: 3.0, 30: 4.0, 40: 3.0, 50: 3.5}
TIMES = ("train_seconds", "tokens_per_second")
TWELVE = {"max_steps": 12, "validate_every": 4}  # and a row of history after 10
SENTENCES = {"source": np.array([3, 2**63], np.uint64), "target": np.array([5], np.uint64)}
MODEL = ModelConfig(d_model=12, num_heads=3, num_layers=1, d_ff=20)


class FakeTokenizer:
    """Only its size is asked for."""

    vocab_size = VOCAB_SIZE


def facts(upto: int = 50, **changed: Any) -> dict[str, Any]:
    rows: list[dict[str, float]] = [{"step": step, "loss": 1.0} for step in range(5, upto + 1, 5)]
    for row in rows:
        if row["step"] in LOSSES:
            row["valid_loss"] = LOSSES[int(row["step"])]
    return {"step": upto, "validations_without_gain": 0, "history": rows, **changed}


def config(**changed: Any) -> TrainingConfig:
    return tiny_config(**({"max_steps": 50, "validate_every": 10, "average_checkpoints": 2} | changed))


def save(run_folder: Path, step: int, value: float = 0.0) -> Path:
    folder = run_folder / checkpoint_name(step)
    folder.mkdir(parents=True)
    tensors = {"model.w": torch.tensor([value, 1.0]), "optimizer.exp_avg.w": torch.ones(2)}
    write_checkpoint(folder, tensors, facts(step))
    return folder


def kept(run_folder: Path) -> list[int]:
    return [checkpoint_step(folder) for folder in checkpoint_folders(run_folder)]


def test_the_last_or_the_best_checkpoints_are_averaged() -> None:
    assert steps_to_average(facts(), config()) == [40, 50]
    assert steps_to_average(facts(), config(average_of="best")) == [20, 40]
    assert steps_to_average(facts(), config(average_of="best", average_checkpoints=1)) == [40]
    assert steps_to_average(facts(20), config(average_checkpoints=5)) == [10, 20]


def test_a_run_is_run_finished_at_its_last_step_or_out_of_patience() -> None:
    assert is_run_finished(facts(50), config())
    assert not is_run_finished(facts(40), config())
    assert is_run_finished(facts(40, validations_without_gain=3), config(patience=3))
    assert not is_run_finished(facts(40, validations_without_gain=2), config(patience=3))


def test_pruning_keeps_what_is_averaged_and_two_to_go_back_to(tmp_path: Path) -> None:
    for step in LOSSES:
        prune_checkpoints(tmp_path, save(tmp_path, step), config(average_of="best"))
    assert kept(tmp_path) == [20, 40, 50]


def test_one_averaged_checkpoint_still_keeps_two(tmp_path: Path) -> None:
    for step in LOSSES:
        prune_checkpoints(tmp_path, save(tmp_path, step), config(average_checkpoints=1))
    assert kept(tmp_path) == [40, 50]


def test_checkpoints_of_work_that_is_being_repeated_are_removed(tmp_path: Path) -> None:
    for step in (10, 30, 40):
        save(tmp_path, step)
    prune_checkpoints(tmp_path, save(tmp_path, 20), config())
    assert kept(tmp_path) == [10, 20]


def test_checkpoints_between_validations_are_no_part_of_the_average(tmp_path: Path) -> None:
    """Training that is stopped leaves such."""
    for step, kept_then in ((10, [10]), (20, [10, 20]), (24, [10, 20, 24]), (27, [10, 20, 24, 27])):
        prune_checkpoints(tmp_path, save(tmp_path, step), config())
        assert kept(tmp_path) == kept_then
    assert steps_to_average(facts(27), config()) == [10, 20]
    prune_checkpoints(tmp_path, save(tmp_path, 30), config())
    assert kept(tmp_path) == [20, 27, 30]
    prune_checkpoints(tmp_path, save(tmp_path, 40), config(average_of="best"))
    assert kept(tmp_path) == [20, 30, 40]


def test_weights_are_averaged_and_nothing_else(tmp_path: Path) -> None:
    weights = average_weights([save(tmp_path, 10, 1.0), save(tmp_path, 20, 4.0), save(tmp_path, 30, 10.0)])
    assert weights.keys() == {"w"}
    assert weights["w"].tolist() == [5.0, 1.0]
    assert weights["w"].dtype == torch.float32


def published(tmp_path: Path, run_folder: Path, **changed: Any) -> Any:
    (tmp_path / "tokenizer.model").write_bytes(b"t")
    return publish(
        run_folder,
        TrainParams(languages=LanguagesConfig(), model=MODEL, training=tiny_config(**(TWELVE | changed))),
        tokenizer_model=tmp_path / "tokenizer.model",
        tokenizer=FakeTokenizer(),  # type: ignore[arg-type]
        valid_pairs=tiny_pairs(40, seed=2),
        training_sentences=SENTENCES,
        model_folder=tmp_path / "model",
        metrics_path=tmp_path / "metrics" / "training.json",
        plots_folder=tmp_path / "plots",
    )


def run_in_place(config: TrainingConfig, run_folder: Path, stop_after: int | None) -> None:
    """Train on from the newest checkpoint, keeping and removing checkpoints as worker 0 does."""

    def save(step: int, write: Callable[[Path], None]) -> None:
        prune_checkpoints(run_folder, save_checkpoint(run_folder, step, write), config)

    run(config, run_folder, resume_from=latest_checkpoint(run_folder), stop_after=stop_after, save=save)


def trained(tmp_path: Path) -> Path:
    """A run folder as worker 0 leaves it: twelve steps, checkpoints kept at 8 and 12."""
    run(tiny_config(**TWELVE), tmp_path / "by_step")
    run_folder = tmp_path / "0123456789abcdef"
    run_folder.mkdir()
    for step in (8, 12):
        (tmp_path / "by_step" / str(step)).rename(run_folder / checkpoint_name(step))
    return run_folder


def test_a_finished_run_leaves_model_metrics_and_curves(tmp_path: Path) -> None:
    run_folder = trained(tmp_path)
    result = published(tmp_path, run_folder, average_checkpoints=1)
    metrics = json.loads((tmp_path / "metrics" / "training.json").read_text())
    assert result.metrics == metrics
    assert metrics["steps"] == 12
    # One checkpoint, averaged, is that checkpoint: its loss must be found again.
    assert metrics["averaged_valid_loss"] == pytest.approx(metrics["last_valid_loss"], abs=1e-6)
    config_file = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config_file["fingerprint"] == "0123456789abcdef"
    carried = training_sentences(tmp_path / "model")
    assert {name: hashes.tolist() for name, hashes in carried.items()} == {
        "source": [3, 2**63],
        "target": [5],
    }
    with (tmp_path / "plots" / "validation.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["4", "8", "12"]
    assert float(rows[-1]["valid_loss"]) == metrics["last_valid_loss"]
    training = (tmp_path / "plots" / "training.csv").read_text().splitlines()
    assert training[0] == "step,loss,learning_rate,gradient_norm,tokens_per_second"
    assert len(training) == 1 + len(result.history)
    assert "" not in ",".join(training).split(",")  # an empty cell would be drawn as 0


def test_outputs_hold_no_path_and_no_date(tmp_path: Path) -> None:
    published(tmp_path, trained(tmp_path))
    for path in ("metrics/training.json", "model/config.json", "plots/training.csv"):
        text = (tmp_path / path).read_text()
        assert str(tmp_path) not in text
        assert not re.search(r"\d{4}-\d{2}-\d{2}", text)


def test_a_damaged_checkpoint_is_left_out_of_the_average(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_folder = trained(tmp_path)
    (run_folder / checkpoint_name(8) / "facts.json").write_text("{}")
    result = published(tmp_path, run_folder, average_checkpoints=2)
    assert result.metrics["averaged_valid_loss"] == pytest.approx(result.metrics["last_valid_loss"], abs=1e-6)
    assert "averaging 1 checkpoints, since 1 of those planned are gone or damaged" in caplog.text


def test_a_run_without_a_sound_checkpoint_is_refused(tmp_path: Path) -> None:
    run_folder = trained(tmp_path)
    for step in (8, 12):
        (run_folder / checkpoint_name(step) / "state.safetensors").unlink()
    with pytest.raises(
        ValueError, match="0123456789abcdef: holds no undamaged checkpoint; run stage train again"
    ):
        published(tmp_path, run_folder)


def test_a_run_whose_end_is_damaged_is_not_published_from_before_it(tmp_path: Path) -> None:
    run_folder = trained(tmp_path)
    (run_folder / checkpoint_name(12) / "state.safetensors").unlink()
    match = "step-0000008: newest undamaged checkpoint, but not the end; run stage train again, it goes on from there"
    with pytest.raises(ValueError, match=match):
        published(tmp_path, run_folder)
    assert not (tmp_path / "model").exists()


def test_skipped_steps_are_in_the_metrics_and_leave_no_empty_cell(tmp_path: Path) -> None:
    with spoilt_steps({5, 6, 7, 8}):  # all that one row is made of
        run_folder = trained(tmp_path)
    assert published(tmp_path, run_folder).metrics["skipped_steps"] == 4
    assert json.loads((tmp_path / "metrics" / "training.json").read_text())["skipped_steps"] == 4
    curves = {}
    for name in ("training", "validation"):
        with (tmp_path / "plots" / f"{name}.csv").open() as file:
            curves[name] = list(csv.DictReader(file))
        assert all(value for row in curves[name] for value in row.values())
    assert [row["step"] for row in curves["training"]] == ["4", "10", "12"]
    assert [row["step"] for row in curves["validation"]] == ["4", "8", "12"]


@pytest.mark.parametrize(("average_of", "expected"), [("last", [9, 12]), ("best", [3, 6])])
def test_a_run_stopped_twice_publishes_the_average_that_one_never_stopped_does(
    tmp_path: Path, average_of: str, expected: list[int]
) -> None:
    """It gets worse after step 6, so that its best checkpoints are not its last."""
    settings = {"average_of": average_of, "average_checkpoints": 2, "max_steps": 12, "validate_every": 3,
                "learning_rate": 1.0, "warmup_steps": 11}  # fmt: skip
    metrics, weights = [], []
    for stops in ((), (5, 10)):
        folder = tmp_path / f"stopped {len(stops)} times"
        run_folder = folder / "0123456789abcdef"
        run_folder.mkdir(parents=True)
        for stop_after in (*stops, None):
            run_in_place(tiny_config(**settings), run_folder, stop_after)
        assert (
            steps_to_average(read_facts(run_folder / checkpoint_name(12)), tiny_config(**settings))
            == expected
        )
        metrics.append(published(folder, run_folder, **settings).metrics)
        weights.append((folder / "model" / "weights.safetensors").read_bytes())
    assert weights[0] == weights[1]
    assert {k: v for k, v in metrics[0].items() if k not in TIMES} == {
        k: v for k, v in metrics[1].items() if k not in TIMES
    }
