"""Copies of a model folder that differ from it in one respect."""

import hashlib
import json
import shutil
from pathlib import Path


def with_other_words(folder: Path, to: Path) -> Path:
    """The same weights behind a vocabulary of as many tokens, which are words."""
    copy = shutil.copytree(folder, to)
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    words = {"format": "passerelle words 1", "words": [f"w{number}" for number in range(296)]}
    (copy / "tokenizer.model").write_text(json.dumps(words), encoding="utf-8")
    config["sha256"]["tokenizer.model"] = hashlib.sha256((copy / "tokenizer.model").read_bytes()).hexdigest()
    (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return copy


def with_other_languages(folder: Path, to: Path, source: str, target: str) -> Path:
    copy = shutil.copytree(folder, to)
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    config["languages"] = {"source": source, "target": target}
    (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return copy
