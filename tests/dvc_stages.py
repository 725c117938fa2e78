"""Reading `dvc.yaml`: the stages of the root and of the textbook example, and what each names."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from source_imports import ROOT

yaml = YAML()


def read_stages(folder: Path) -> dict[str, Any]:
    return yaml.load((folder / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


STAGES = read_stages(ROOT)
TEXTBOOK = ROOT / "examples" / "textbook"
CORPUS_STAGES = {"fetch", "prepare", "tokenizer", "shards"}
VARIANT = "${item.variant}/"
"""Stands for the folder of a variant, in a stage that runs for each."""


def content_of(folder: Path, stage: str) -> Any:
    return read_stages(folder)[stage]


def script_of(folder: Path, stage: str) -> tuple[str, Path]:
    """The script that the stage runs, as `dvc.yaml` names it, and its path."""
    name = content_of(folder, stage)["cmd"].split()[1]
    return name, ROOT / name.removeprefix("${root}/") if name.startswith("${root}/") else folder / name


def names(entries: Any) -> list[str]:
    """`- path` and `- path: {options}` alike."""
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]


def outputs(content: Any) -> list[str]:
    return names([*content.get("outs", []), *content.get("metrics", [])])


def variants(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/params.yaml")) if folder != ROOT else []


def without_variant(folder: Path, path: str) -> str:
    """`transformer/model` and `${item.variant}/model` -> `model`."""
    for variant in [VARIANT, *(f"{name}/" for name in variants(folder))]:
        path = path.removeprefix(variant)
    return path


def is_code(path: str) -> bool:
    return path.startswith("${root}/") or path.endswith(".py")


def in_section(path: str, parent: str) -> bool:
    return path == parent or path.startswith(f"{parent}/")
