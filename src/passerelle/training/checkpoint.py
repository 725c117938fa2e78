"""Checkpoints: folders that are complete and undamaged, or skipped.

A checkpoint holds `state.safetensors` (all tensors), `facts.json` (everything else) and `manifest.json`, the
size and SHA-256 of the other two. Neither torch nor safetensors notices a flipped bit by itself, so the
manifest is checked before a checkpoint is used. There is no pickle in it. A run folder holds one such folder
for each checkpoint that is kept, named by its step alone, so that repeated work overwrites. `state` knows what
the tensors and facts of training are.

Imports no torch before tensors are read or written: the driver and Ray's controller look at names and facts alone.
"""

import json
import logging
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from passerelle.files import FULL, sha256_of_file, whole_file, whole_folder, write_json

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger(__name__)

STATE, FACTS, MANIFEST = "state.safetensors", "facts.json", "manifest.json"

Check = Callable[[Path], None]
"""Raises DamagedCheckpoint where a checkpoint folder cannot be used."""


class DamagedCheckpoint(ValueError):  # noqa: N818  (a state of a file, found at reading)
    """A checkpoint's file is missing or is not what was written; the message names file, size or hashes."""


def checkpoint_name(step: int) -> str:
    """The folder name of the checkpoint after `step` optimiser steps."""
    return f"step-{step:07d}"


def checkpoint_step(folder: Path) -> int:
    """The step that a checkpoint folder is named after."""
    return int(folder.name.removeprefix("step-"))


def checkpoint_folders(run_folder: Path) -> list[Path]:
    """The checkpoint folders of a run, oldest first, damaged or not."""
    if not run_folder.is_dir():
        return []
    folders = [path for path in run_folder.iterdir() if re.fullmatch(r"step-\d{7,}", path.name)]
    return sorted(folders, key=checkpoint_step)


def write_checkpoint(folder: Path, tensors: "Mapping[str, Tensor]", facts: Mapping[str, Any]) -> None:
    """Fill the existing, empty `folder` with a checkpoint; its manifest is written last."""
    from safetensors.torch import save_file

    try:
        with whole_file(folder / STATE) as temporary:  # which makes an OSError of what safetensors raises
            save_file(
                {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, temporary
            )
        write_json(folder / FACTS, dict(facts))
        manifest = {
            name: {"bytes": (folder / name).stat().st_size, "sha256": sha256_of_file(folder / name)}
            for name in (STATE, FACTS)
        }
        write_json(folder / MANIFEST, manifest)
    except OSError as error:
        num_bytes = sum(tensor.nbytes for tensor in tensors.values())
        raise _said(error, folder.parent, f" of {num_bytes:,} bytes") from None


def save_checkpoint(run_folder: Path, step: int, write: Callable[[Path], None]) -> Path:
    """Let `write` fill a temporary folder, sync it and name it in the run folder; returns its path.

    Where it cannot be written, nothing of it stays and older checkpoints are as they were.
    """
    folder = run_folder / checkpoint_name(step)
    try:
        with whole_folder(folder) as temporary:
            write(temporary)
    except OSError as error:
        raise _said(error, run_folder) from None
    return folder


def remove_unfinished(run_folder: Path) -> None:
    """Remove what a killed process left of a checkpoint that it was writing; for whoever holds the run's lock."""
    for path in run_folder.glob(".step-[0-9]*.*"):
        shutil.rmtree(path)


def verify_checkpoint(folder: Path) -> None:
    """Raises DamagedCheckpoint unless every file of the checkpoint is there, as it was written, and of its kind."""
    for name, (num_bytes, sha256) in _manifest(folder).items():
        path = folder / name
        if not path.is_file():
            raise DamagedCheckpoint(f"{path}: missing, but {MANIFEST} lists it")
        if path.stat().st_size != num_bytes:
            raise DamagedCheckpoint(f"{path}: {path.stat().st_size} bytes, but {MANIFEST} says {num_bytes}")
        found = sha256_of_file(path)
        if found != sha256:
            raise DamagedCheckpoint(f"{path}: sha256 is {found}, but {MANIFEST} says {sha256}")
    tensor_forms(folder)
    read_facts(folder)


def read_checkpoint(folder: Path) -> "tuple[dict[str, Tensor], dict[str, Any]]":
    """The tensors (on the CPU) and facts of a checkpoint, after checking it. Raises DamagedCheckpoint."""
    from safetensors.torch import load_file

    verify_checkpoint(folder)
    try:
        return load_file(folder / STATE), read_facts(folder)
    except SafetensorError as error:
        raise _no_tensors(folder, error) from None


def tensor_forms(folder: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type, as safetensors calls it, and shape of each tensor in a checkpoint. Raises DamagedCheckpoint."""
    try:
        with safe_open(folder / STATE, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  (no mapping)
            return {name: (one.get_dtype(), tuple(one.get_shape())) for name, one in slices.items()}
    except SafetensorError as error:
        raise _no_tensors(folder, error) from None


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of a checkpoint. Raises DamagedCheckpoint."""
    facts = _read_json(folder / FACTS)
    if not isinstance(facts, dict):
        raise DamagedCheckpoint(f"{folder / FACTS}: not the facts of a checkpoint ({type(facts).__name__})")
    return facts


def sound_checkpoints(run_folder: Path, check: Check = verify_checkpoint) -> list[Path]:
    """The checkpoints of a run that pass the check, oldest first; logs a warning for each other one."""
    return [folder for folder in checkpoint_folders(run_folder) if _is_sound(folder, check)]


def latest_checkpoint(run_folder: Path, check: Check = verify_checkpoint) -> Path | None:
    """The newest checkpoint of a run that passes the check; logs a warning for each one that is skipped."""
    folders = reversed(checkpoint_folders(run_folder))
    return next((folder for folder in folders if _is_sound(folder, check)), None)


def _is_sound(folder: Path, check: Check) -> bool:
    try:
        check(folder)
    except DamagedCheckpoint as error:
        logger.warning("skipping a damaged checkpoint: %s", error)
        return False
    return True


def _manifest(folder: Path) -> dict[str, tuple[int, str]]:
    """Size and hash of each file."""
    path = folder / MANIFEST
    if not path.is_file():
        raise DamagedCheckpoint(f"{path}: missing, so the checkpoint was not written whole")
    manifest = _read_json(path)
    try:
        listed = {name: (manifest[name]["bytes"], manifest[name]["sha256"]) for name in (STATE, FACTS)}
    except (KeyError, TypeError) as error:
        raise DamagedCheckpoint(f"{path}: not a checkpoint's manifest ({error!r})") from None
    for name, (num_bytes, sha256) in listed.items():
        if type(num_bytes) is not int or not re.fullmatch("[0-9a-f]{64}", str(sha256)):
            raise DamagedCheckpoint(f"{path}: not a checkpoint's manifest ({name} has no size and SHA-256)")
    return listed


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, or nested too deep
        raise DamagedCheckpoint(f"{path}: not valid JSON ({error})") from None


def _no_tensors(folder: Path, error: SafetensorError) -> DamagedCheckpoint:
    return DamagedCheckpoint(f"{folder / STATE}: not a file of safetensors ({error})")


def _said(error: OSError, run_folder: Path, size: str = "") -> OSError:
    """What to do where the disk is full; else the error."""
    if error.errno not in FULL:
        return error
    return OSError(
        f"{run_folder}: no room for a checkpoint{size}; free some, or move {run_folder.parent} to a larger disk and "
        "set PASSERELLE_RUNS to it; the same command then goes on from the last checkpoint"
    )
