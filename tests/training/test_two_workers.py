"""Real processes over gloo: the number of workers changes results by float rounding alone."""

from pathlib import Path

import pytest
import torch
from torch import distributed

from passerelle.config import TrainingConfig
from passerelle.training.checkpoint import read_checkpoint
from passerelle.training.group import Group
from tiny import Name, run, run_processes, tiny_config


def config(optimizer: str) -> TrainingConfig:
    return tiny_config(
        optimizer=optimizer, muon_rate=1.0, max_steps=30, validate_every=10, micro_batches_per_step=5
    )


def worker(rank: int, num_workers: int, name: Name, optimizer: str, folder: Path) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=num_workers
    )
    run(config(optimizer), folder, group=Group(rank, num_workers, distributed.all_reduce), name=name)
    distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("name", "optimizer", "num_workers"),
    [
        ("transformer", "adam", 2),
        ("transformer", "muon", 2),
        ("transformer", "muon", 3),
        ("bahdanau", "muon", 2),
    ],
)
def test_several_workers_train_as_one_does(
    tmp_path: Path, name: Name, optimizer: str, num_workers: int
) -> None:
    run(config(optimizer), tmp_path / "alone", name=name)
    run_processes(worker, num_workers, num_workers, name, optimizer, tmp_path)
    expected, expected_facts = read_checkpoint(tmp_path / "alone" / "30")
    found, facts = read_checkpoint(tmp_path / "30")
    for row, expected_row in zip(facts["history"], expected_facts["history"], strict=True):
        assert row["loss"] == pytest.approx(expected_row["loss"], abs=1e-4)
        if "valid_loss" in expected_row:
            assert row["valid_loss"] == pytest.approx(expected_row["valid_loss"], abs=1e-4)
    for key in expected:
        if key.startswith("model."):
            torch.testing.assert_close(found[key], expected[key], atol=2e-3, rtol=0)
