"""Checkpoints: folders that are complete and undamaged, or skipped.

A checkpoint holds `state.safetensors` (all tensors), `facts.json` (everything else) and `manifest.json`, the
size and SHA-256 of the other two. Neither torch nor safetensors notices a flipped bit by itself, so the
manifest is checked before a checkpoint is used. There is no pickle in it. A run folder holds one such folder
for each checkpoint that is kept, named by its step alone, so that repeated work overwrites.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from passerelle.files import sha256_of_file, whole_folder, write_json

logger = logging.getLogger(__name__)

STATE, FACTS, MANIFEST = "state.safetensors", "facts.json", "manifest.json"


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


def write_checkpoint(folder: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Fill the existing, empty `folder` with a checkpoint; its manifest is written last."""
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, folder / STATE)
    write_json(folder / FACTS, dict(facts))
    manifest = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": sha256_of_file(folder / name)}
        for name in (STATE, FACTS)
    }
    write_json(folder / MANIFEST, manifest)


def save_checkpoint(run_folder: Path, step: int, write: Callable[[Path], None]) -> Path:
    """Let `write` fill a temporary folder, sync it and name it in the run folder; returns its path."""
    folder = run_folder / checkpoint_name(step)
    with whole_folder(folder) as temporary:
        write(temporary)
    return folder


def verify_checkpoint(folder: Path) -> None:
    """Raises DamagedCheckpoint unless every file of the checkpoint is there and as it was written."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        expected = {name: (manifest[name]["bytes"], manifest[name]["sha256"]) for name in (STATE, FACTS)}
    except FileNotFoundError:
        raise DamagedCheckpoint(
            f"{folder / MANIFEST}: missing, so the checkpoint was not written whole"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedCheckpoint(f"{folder / MANIFEST}: not a checkpoint's manifest ({error!r})") from None
    for name, (num_bytes, sha256) in expected.items():
        path = folder / name
        if not path.is_file():
            raise DamagedCheckpoint(f"{path}: missing, but {MANIFEST} lists it")
        if path.stat().st_size != num_bytes:
            raise DamagedCheckpoint(f"{path}: {path.stat().st_size} bytes, but {MANIFEST} says {num_bytes}")
        found = sha256_of_file(path)
        if found != sha256:
            raise DamagedCheckpoint(f"{path}: sha256 is {found}, but {MANIFEST} says {sha256}")


def read_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors (on the CPU) and facts of a checkpoint, after checking it. Raises DamagedCheckpoint."""
    verify_checkpoint(folder)
    return load_file(folder / STATE), read_facts(folder)


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of a checkpoint that has been checked."""
    facts: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    return facts


def sound_checkpoints(run_folder: Path) -> list[Path]:
    """The undamaged checkpoints of a run, oldest first; logs a warning for each damaged one."""
    sound = []
    for folder in checkpoint_folders(run_folder):
        try:
            verify_checkpoint(folder)
        except DamagedCheckpoint as error:
            logger.warning("skipping a damaged checkpoint: %s", error)
        else:
            sound.append(folder)
    return sound


def latest_checkpoint(run_folder: Path) -> Path | None:
    """The newest undamaged checkpoint of a run; logs a warning for each damaged one that is skipped."""
    for folder in reversed(checkpoint_folders(run_folder)):
        try:
            verify_checkpoint(folder)
        except DamagedCheckpoint as error:
            logger.warning("skipping a damaged checkpoint: %s", error)
        else:
            return folder
    return None
