"""Checkpoints: written whole, told from damaged ones, found again."""

import json
import logging
from pathlib import Path

import pytest
import torch

from passerelle.training.checkpoint import (
    DamagedCheckpoint,
    checkpoint_folders,
    checkpoint_step,
    latest_checkpoint,
    read_checkpoint,
    save_checkpoint,
    sound_checkpoints,
    verify_checkpoint,
    write_checkpoint,
)

FACTS = {"step": 7, "history": [{"step": 7, "loss": 1.25}], "best_valid_loss": None}
TENSORS = {"model.w": torch.arange(35.0).view(5, 7), "optimizer.step.w": torch.tensor(7.0)}


def save(run_folder: Path, step: int) -> Path:
    return save_checkpoint(run_folder, step, lambda folder: write_checkpoint(folder, TENSORS, FACTS))


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 0b100
    path.write_bytes(content)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    tensors, facts = read_checkpoint(save(tmp_path, 7))
    assert facts == FACTS
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(tensors[name], tensor)


def test_the_same_state_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = save(tmp_path, 7), save(tmp_path, 8)
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_tensors_that_are_not_contiguous_keep_their_values(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, {"transposed": TENSORS["model.w"].t()}, {})
    assert torch.equal(read_checkpoint(tmp_path)[0]["transposed"], TENSORS["model.w"].t())


@pytest.mark.parametrize("name", ["state.safetensors", "facts.json"])
def test_a_flipped_bit_is_found(tmp_path: Path, name: str) -> None:
    folder = save(tmp_path, 7)
    expected = json.loads((folder / "manifest.json").read_text())[name]["sha256"]
    flip_a_bit(folder / name)
    with pytest.raises(
        DamagedCheckpoint, match=rf"step-0000007/{name}: sha256 is [0-9a-f]{{64}}.*{expected}"
    ):
        read_checkpoint(folder)


def test_a_cut_file_is_found(tmp_path: Path) -> None:
    folder = save(tmp_path, 7)
    content = (folder / "state.safetensors").read_bytes()
    (folder / "state.safetensors").write_bytes(content[:-5])
    match = rf"state.safetensors: {len(content) - 5} bytes, but manifest.json says {len(content)}"
    with pytest.raises(DamagedCheckpoint, match=match):
        verify_checkpoint(folder)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("manifest.json", r"manifest.json: missing, so the checkpoint was not written whole"),
        ("facts.json", r"facts.json: missing, but manifest.json lists it"),
    ],
)
def test_a_missing_file_is_found(tmp_path: Path, name: str, match: str) -> None:
    folder = save(tmp_path, 7)
    (folder / name).unlink()
    with pytest.raises(DamagedCheckpoint, match=match):
        verify_checkpoint(folder)


@pytest.mark.parametrize("text", ["", "[]", '{"facts.json": 3}', "{"])
def test_a_manifest_that_is_none_is_found(tmp_path: Path, text: str) -> None:
    folder = save(tmp_path, 7)
    (folder / "manifest.json").write_text(text)
    with pytest.raises(DamagedCheckpoint, match="not a checkpoint's manifest"):
        verify_checkpoint(folder)


def test_the_newest_checkpoint_is_the_one_of_the_highest_step(tmp_path: Path) -> None:
    for step in (300, 9_000_000, 12_345_678):
        save(tmp_path, step)
    assert [checkpoint_step(folder) for folder in checkpoint_folders(tmp_path)] == [
        300,
        9_000_000,
        12_345_678,
    ]
    assert latest_checkpoint(tmp_path) == tmp_path / "step-12345678"


def test_a_damaged_newest_checkpoint_is_skipped_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = save(tmp_path, 3), save(tmp_path, 6)
    flip_a_bit(bad / "state.safetensors")
    with caplog.at_level(logging.WARNING):
        assert latest_checkpoint(tmp_path) == good
        assert sound_checkpoints(tmp_path) == [good]
    assert "skipping a damaged checkpoint" in caplog.text
    assert "step-0000006/state.safetensors" in caplog.text


def test_other_files_of_the_run_are_no_checkpoints(tmp_path: Path) -> None:
    for name in ("mlflow.json", ".step-0000009.x1", "step-12", "checkpoint_manager_snapshot.json"):
        (tmp_path / name).mkdir()
    assert checkpoint_folders(tmp_path) == []
    assert latest_checkpoint(tmp_path) is None
    assert latest_checkpoint(tmp_path / "absent") is None


def test_an_interrupted_write_leaves_no_checkpoint(tmp_path: Path) -> None:
    def write_half(folder: Path) -> None:
        write_checkpoint(folder, TENSORS, FACTS)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(tmp_path, 7, write_half)
    assert list(tmp_path.iterdir()) == []


def test_repeated_work_replaces_the_checkpoint(tmp_path: Path) -> None:
    folder = save(tmp_path, 7)
    save_checkpoint(tmp_path, 7, lambda path: write_checkpoint(path, {}, {"step": 7}))
    assert read_checkpoint(folder) == ({}, {"step": 7})
