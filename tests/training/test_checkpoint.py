"""Checkpoints: written whole, told from damaged ones, found again."""

import json
import logging
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from passerelle.training.checkpoint import (
    DamagedCheckpoint,
    checkpoint_folders,
    checkpoint_name,
    checkpoint_step,
    latest_checkpoint,
    read_checkpoint,
    remove_unfinished,
    save_checkpoint,
    sound_checkpoints,
    verify_checkpoint,
    write_checkpoint,
)
from tiny import sign

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


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "not a checkpoint's manifest"),
        (b'{"facts.json": 3}', "not a checkpoint's manifest"),
        (b'{"state.safetensors": {"bytes": 3}}', "not a checkpoint's manifest"),
    ],
    ids=("empty", "half", "no UTF-8", "too deep", "a list", "one number", "no hash"),
)
def test_a_manifest_that_is_none_is_found(tmp_path: Path, content: bytes, match: str) -> None:
    folder = save(tmp_path, 7)
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(DamagedCheckpoint, match=f"step-0000007/manifest.json: {match}"):
        verify_checkpoint(folder)


@pytest.mark.parametrize("file", ["state.safetensors", "facts.json"])
@pytest.mark.parametrize(("key", "value"), [("bytes", 3), ("sha256", "0" * 64)])
def test_a_manifest_that_lies_is_found(tmp_path: Path, file: str, key: str, value: object) -> None:
    folder = save(tmp_path, 7)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest[file][key] = value
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DamagedCheckpoint, match=rf"step-0000007/{file}: .* but manifest.json says {value}"):
        verify_checkpoint(folder)


@pytest.mark.parametrize("name", ["state.safetensors", "facts.json"])
def test_an_empty_file_is_found(tmp_path: Path, name: str) -> None:
    folder = save(tmp_path, 7)
    (folder / name).write_bytes(b"")
    with pytest.raises(DamagedCheckpoint, match=f"step-0000007/{name}: 0 bytes, but manifest.json says"):
        read_checkpoint(folder)


def test_a_file_in_a_folders_place_is_found(tmp_path: Path) -> None:
    (tmp_path / "step-0000007").write_text("no folder")
    assert latest_checkpoint(tmp_path) is None


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("state.safetensors", b"", "not a file of safetensors"),
        ("state.safetensors", b"\xff" * 40, "not a file of safetensors"),
        ("state.safetensors", pickle.dumps({"model.w": [1.0]}), "not a file of safetensors"),
        ("facts.json", b"", "not valid JSON"),
        ("facts.json", b'{"step": 7', "not valid JSON"),
        ("facts.json", b"\xff\xfe", "not valid JSON"),
        ("facts.json", b"[" * 100_000, "not valid JSON"),
        ("facts.json", b'["step"]', r"not the facts of a checkpoint \(list\)"),
    ],
    ids=("empty", "bytes", "pickle", "no facts", "half of the facts", "no UTF-8", "too deep", "a list"),
)
def test_content_of_another_kind_is_found_even_where_the_hashes_are_right(
    tmp_path: Path, name: str, content: bytes, match: str
) -> None:
    good, folder = save(tmp_path, 3), save(tmp_path, 7)
    (folder / name).write_bytes(content)
    sign(folder)
    with pytest.raises(DamagedCheckpoint, match=f"step-0000007/{name}: {match}"):
        read_checkpoint(folder)
    assert latest_checkpoint(tmp_path) == good


def test_a_type_of_numbers_that_torch_lacks_is_found(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]}}).encode()
    folder = save(tmp_path, 7)
    (folder / "state.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"abc")
    sign(folder)
    with pytest.raises(DamagedCheckpoint, match=r"state.safetensors: not a file of safetensors"):
        read_checkpoint(folder)


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


def test_where_all_are_damaged_there_is_none_and_each_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flip_a_bit(save(tmp_path, 3) / "state.safetensors")
    (save(tmp_path, 6) / "facts.json").write_bytes(b"")
    (save(tmp_path, 9) / "manifest.json").unlink()
    with caplog.at_level(logging.WARNING):
        assert latest_checkpoint(tmp_path) is None
    assert [re.search(r"step-\d+", line)[0] for line in caplog.messages] == [
        "step-0000009",
        "step-0000006",
        "step-0000003",
    ]


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


def test_what_a_killed_write_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    run_folder = tmp_path / "run"
    kept = [save(run_folder, step) for step in (7, 40)]
    for name in ("progress.json", ".progress.json", "lock"):
        (run_folder / name).write_text("{}")
    before = {path: path.stat().st_ino for path in run_folder.rglob("*")}
    code = (
        "import os, signal, sys; from pathlib import Path; from passerelle.files import whole_folder, write_json\n"
        "with whole_folder(Path(sys.argv[1])) as folder:\n"
        "    write_json(folder / 'facts.json', {})\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    for step in (40, 50):  # written again, or for the first time
        killed = subprocess.run(
            [sys.executable, "-c", code, str(run_folder / checkpoint_name(step))], check=False
        )
        assert killed.returncode == -signal.SIGKILL
    assert len(set(run_folder.rglob("*")) - set(before)) == 4  # two folders, a file in each
    assert checkpoint_folders(run_folder) == kept
    remove_unfinished(run_folder)
    assert {path: path.stat().st_ino for path in run_folder.rglob("*")} == before
    remove_unfinished(tmp_path / "absent")


ON_A_SMALL_DISK = """
import json, sys
from pathlib import Path
import torch
from passerelle.training.checkpoint import read_checkpoint, save_checkpoint, write_checkpoint

run_folder = Path(sys.argv[1], "abc")

def save(step, size):
    tensors = {"model.w": torch.ones(size)}
    try:
        save_checkpoint(run_folder, step, lambda folder: write_checkpoint(folder, tensors, {"step": step}))
    except OSError as error:
        return str(error)

def left():
    sizes = [read_checkpoint(path)[0]["model.w"].sum().item() for path in sorted(run_folder.glob("step-*"))]
    return sizes, sorted(path.name for path in run_folder.iterdir())

answers = [save(10, 10_000), save(20, 60_000), left()]  # 64 Ki numbers are all that the disk holds
answers += [save(10, 60_000), left()]  # in the place of one that is there
fillers = []
try:
    while True:  # until not even a name can be written
        fillers.append(run_folder.with_name(f"filler-{len(fillers)}"))
        fillers[-1].touch()
except OSError:
    answers += [save(20, 1), left()]
for path in fillers[:-1]:
    path.unlink()
answers += [save(20, 40_000), left()]
print(json.dumps(answers))
"""


def test_a_full_disk_leaves_older_checkpoints_whole_and_is_told_in_one_line(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount += ['mount -t tmpfs -o size=256k,nr_inodes=64 tmpfs "$0" && exec "$@"', str(runs)]
    possible = subprocess.run([*mount, "true"], capture_output=True, text=True, check=False)
    if possible.returncode:
        pytest.skip(f"no small file system can be mounted here: {possible.stderr.strip()}")
    ran = subprocess.run(
        [*mount, sys.executable, "-c", ON_A_SMALL_DISK, str(runs)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    first, new, beside, over, after, nameless, still, freed, at_last = json.loads(ran.stdout)
    assert first is None
    advice = (
        f"; free some, or move {runs} to a larger disk and set PASSERELLE_RUNS to it; "
        "the same command then goes on from the last checkpoint"
    )
    assert new == over == f"{runs / 'abc'}: no room for a checkpoint of 240,000 bytes" + advice
    assert nameless == f"{runs / 'abc'}: no room for a checkpoint" + advice
    assert beside == after == still == [[10_000.0], ["step-0000010"]]
    assert freed is None
    assert at_last == [[10_000.0, 40_000.0], ["step-0000010", "step-0000020"]]


@pytest.mark.parametrize(("key", "value"), [("bytes", None), ("sha256", 5), ("sha256", "two\nlines")])
def test_a_manifest_without_size_or_hash_is_found(tmp_path: Path, key: str, value: object) -> None:
    folder = save(tmp_path, 7)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["facts.json"][key] = value
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(
        DamagedCheckpoint, match=r"manifest.json: not .* \(facts.json has no size and SHA-256\)$"
    ):
        verify_checkpoint(folder)
