"""Params files for tests: the project's own, changed."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
ABSENT = object()
"""Stands for a key that is left out."""


def read_yaml(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


def write_params(path: Path, *changes: tuple[str, Any]) -> Path:
    """The project's own params.yaml, changed at each dotted key (or without it, for ABSENT)."""
    sections = read_yaml(ROOT / "params.yaml")
    for key, value in changes:
        *parents, last = key.split(".")
        section = sections
        for parent in parents:
            section = section[parent]
        if value is ABSENT:
            del section[last]
        else:
            section[last] = value
    with path.open("w", encoding="utf-8") as file:
        YAML(typ="safe", pure=True).dump(sections, file)
    return path


def write_variant(folder: Path, text: str) -> Path:
    """A file beside which, in the folder above, the project's params.yaml stands."""
    write_params(folder / "params.yaml", ("training.seed", 5))
    (folder / "small").mkdir()
    path = folder / "small" / "params.yaml"
    path.write_text(text, encoding="utf-8")
    return path
