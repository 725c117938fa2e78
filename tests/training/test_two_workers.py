"""Real processes over gloo: the number of workers changes results by float rounding alone."""

import tempfile
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as multiprocessing
from torch import distributed

from passerelle.training.checkpoint import read_checkpoint
from tiny import run, tiny_config

CONFIG = tiny_config(max_steps=30, validate_every=10, micro_batches_per_step=5)


def worker(rank: int, num_workers: int, folder: Path) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=num_workers
    )
    run(CONFIG, folder, rank=rank, num_workers=num_workers, reduce=distributed.all_reduce)
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def by_one() -> Path:
    folder = Path(tempfile.mkdtemp())
    run(CONFIG, folder)
    return folder


@pytest.mark.parametrize("num_workers", [2, 3])
def test_several_workers_train_as_one_does(by_one: Path, tmp_path: Path, num_workers: int) -> None:
    multiprocessing.spawn(worker, args=(num_workers, tmp_path), nprocs=num_workers)
    expected, expected_facts = read_checkpoint(by_one / "30")
    found, facts = read_checkpoint(tmp_path / "30")
    for row, expected_row in zip(facts["history"], expected_facts["history"], strict=True):
        assert row["loss"] == pytest.approx(expected_row["loss"], abs=1e-4)
        if "valid_loss" in expected_row:
            assert row["valid_loss"] == pytest.approx(expected_row["valid_loss"], abs=1e-4)
    for name in expected:
        if name.startswith("model."):
            torch.testing.assert_close(found[name], expected[name], atol=2e-3, rtol=0)
