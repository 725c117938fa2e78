"""Where a score comes from, on one card: data, split, tokenizer, model, code, parameters, machine, time.

A card is what `reproduce` needs to make the score again, as JSON. What is not known, such as the commit outside
git or the parameters of earlier stages without `dvc.lock`, is absent from it.
"""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from passerelle.data.manifest import read_manifest
from passerelle.files import sha256_of_file

FORMAT = 1
NAME = "evaluation/lineage.json"
"""Of the card among the artifacts of a run."""
SPLITS = ("train", "valid", "test")
PARAMS = "params.yaml"
STAGES = ("fetch", "prepare", "tokenizer", "shards", "train")
"""Those before the evaluation, in their order."""
IDENTITY = {"git.": "code", "version.": "versions", "machine.": "machine", "dvc.": "experiment"}
"""Prefix of the tags of `identity`, and the card's section for them."""
DATA_MD5 = "dvc.md5."


def lineage_card(
    *,
    root: Path,
    tags: Mapping[str, str],
    model_folder: Path,
    shards: Path,
    test: Path,
    params: Mapping[str, Any],
    scores: Mapping[str, float],
    signatures: Mapping[str, str],
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """The card of scores made in the working folder, that of a pipeline, just now.

    root: of the project's code; tags: its `identity` before the evaluation began to write. test: the sentences
    scored. params: the sections that the evaluation received; those of earlier stages are read from `dvc.lock`.
    seconds: how long what took. Two levels deep but for `parameters` and `data`, and nothing in it depends on where
    the project lies.
    """
    config = json.loads((model_folder / "config.json").read_text(encoding="utf-8"))
    manifests = {split: read_manifest(shards / split) for split in SPLITS if (shards / split).is_dir()}
    known = identity_sections(tags)
    variant = model_folder.parent.as_posix()
    parameters = {**params_of_stages(Path("dvc.lock"), variant), **params}
    return {
        "format": FORMAT,
        "run": {"fingerprint": config["fingerprint"], "folder": _folder(root), "variant": variant},
        "scores": dict(scores),
        "signatures": dict(signatures),
        "data": {
            "test_sha256": sha256_of_file(test),
            "shards_sha256": {split: manifest["content_sha256"] for split, manifest in manifests.items()},
            **known.pop("data", {}),
        },
        "split": dict(parameters.get("split", {})),
        "tokenizer": {"sha256": config["sha256"]["tokenizer.model"], **parameters.get("tokenizer", {})},
        "model": {"sha256": config["sha256"]["weights.safetensors"], **config["model"]},
        "seeds": _seeds(parameters),
        "parameters": parameters,
        **known,
        "gpus": _gpus(),
        "time": {"date": datetime.now(UTC).isoformat(timespec="seconds"), **_rounded(seconds)},
    }


def identity_sections(tags: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The tags of `identity`, or of a recorded run, by sections of the card: code, data, versions and so on."""
    sections: dict[str, dict[str, Any]] = {}
    for tag, value in tags.items():
        if tag.startswith(DATA_MD5):
            hashes = sections.setdefault("data", {}).setdefault("dvc_md5", {})
            hashes[tag.removeprefix(DATA_MD5)] = value
            continue
        for prefix, section in IDENTITY.items():
            if tag.startswith(prefix):
                sections.setdefault(section, {})[tag.removeprefix(prefix)] = value
    if "dirty" in (code := sections.get("code", {})):
        code["dirty"] = code["dirty"] == "true"
    return sections


def params_of_stages(lock: Path, variant: str = ".") -> dict[str, dict[str, Any]]:
    """The sections of params.yaml that DVC's stages have run with, as `dvc.lock` records them.

    Of a pipeline with variants, what the variant's own file says replaces what the other one says.
    """
    if not lock.is_file():
        return {}
    stages = YAML(typ="safe", pure=True).load(lock.read_text(encoding="utf-8")).get("stages", {})
    recorded = [stages.get(name) or stages.get(f"{name}@{variant}") or {} for name in STAGES]
    sections: dict[str, dict[str, Any]] = {}
    for file in (PARAMS, f"{variant}/{PARAMS}"):
        for stage in recorded:
            for section, values in stage.get("params", {}).get(file, {}).items():
                if isinstance(values, dict):
                    sections[section] = {**sections.get(section, {}), **values}
    return sections


def _folder(root: Path) -> str:
    """The working folder below the project's root, or below that of the copy which DVC runs an experiment in."""
    here = Path.cwd().resolve()
    for top in (Path(os.environ.get("DVC_ROOT") or root), root):
        if here.is_relative_to(top.resolve()):
            return here.relative_to(top.resolve()).as_posix()
    return "."


def _seeds(parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    return {
        f"{section}.{key}": value
        for section, values in parameters.items()
        for key, value in values.items()
        if key == "seed" and value is not None
    }


def _gpus() -> list[str]:
    import torch  # late: `reproduce` reads cards without it

    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    return {f"{name}_seconds": round(value, 1) for name, value in seconds.items()}
