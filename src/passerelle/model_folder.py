"""A trained model as a folder: all that inference needs, in formats that load no code."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_numpy_file
from safetensors.numpy import save_file as save_numpy_file
from safetensors.torch import load_file, save_file
from torch import Tensor

from passerelle.config import LanguagesConfig, ModelConfig
from passerelle.data.tokenizer import Tokenizer, load_tokenizer
from passerelle.files import sha256_of_file, whole_folder, write_json
from passerelle.models import Model, build_model

FORMAT = 2
FILES = ("weights.safetensors", "tokenizer.model", "training_sentences.safetensors")


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to translate (evaluation mode, float32)."""

    model: Model
    tokenizer: Tokenizer
    languages: LanguagesConfig
    fingerprint: str
    """Of the run that trained it."""


def save_model(
    folder: Path,
    weights: dict[str, Tensor],
    tokenizer_model: Path,
    *,
    model: ModelConfig,
    languages: LanguagesConfig,
    fingerprint: str,
    training_sentences: Mapping[str, NDArray[np.uint64]],
) -> None:
    """Write weights (by parameter name), tokenizer and configuration as `folder`, whole or not at all.

    training_sentences: for `source` and `target` the hashes (`corpus.sentence_hashes`) of what it was trained on, so
    that an evaluation on any of them can be refused.
    """
    with whole_folder(folder) as temporary:
        save_file(
            {name: tensor.contiguous() for name, tensor in weights.items()}, temporary / "weights.safetensors"
        )
        shutil.copyfile(tokenizer_model, temporary / "tokenizer.model")
        save_numpy_file(dict(training_sentences), temporary / "training_sentences.safetensors")
        content = {
            "format": FORMAT,
            "fingerprint": fingerprint,
            "languages": languages.model_dump(),
            "model": model.model_dump(),
            "sha256": {name: sha256_of_file(temporary / name) for name in FILES},
        }
        write_json(temporary / "config.json", content)


def load_model(folder: Path, device: torch.device | None = None) -> LoadedModel:
    """The model in `folder`, in evaluation mode on `device` (default: CPU).

    Raises ValueError where a file is missing, damaged or of another format.
    """
    config = read_config(folder)
    for name, expected in config["sha256"].items():
        found = sha256_of_file(folder / name) if (folder / name).is_file() else "no file"
        if found != expected:
            raise ValueError(
                f"{folder / name}: sha256 is {found}, but config.json expects {expected}; train again"
            )
    tokenizer = load_tokenizer(folder / "tokenizer.model")
    model_config = ModelConfig.model_validate(config["model"])
    model = build_model(model_config, tokenizer.vocab_size)
    try:
        missing, unexpected = model.load_state_dict(load_file(folder / "weights.safetensors"), strict=False)
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(f"{folder / 'weights.safetensors'}: does not fit config.json: {error}") from None
    tied = model.state_dict().keys() - dict(model.named_parameters())  # other names of one parameter
    if unexpected or set(missing) - tied:
        raise ValueError(
            f"{folder / 'weights.safetensors'}: missing {sorted(set(missing) - tied)}, unexpected {unexpected}"
        )
    return LoadedModel(
        model=model.eval().to(device or torch.device("cpu")),
        tokenizer=tokenizer,
        languages=LanguagesConfig.model_validate(config["languages"]),
        fingerprint=config["fingerprint"],
    )


def read_config(folder: Path) -> dict[str, Any]:
    """The model's config.json; ValueError where there is none, or one of another format."""
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder}: not a model folder (no config.json); the stage `train` writes one")
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if config.get("format") != FORMAT:
        raise ValueError(
            f"{path}: format {config.get('format')!r}, but this version reads {FORMAT}; train again"
        )
    return config


def training_sentences(folder: Path) -> dict[str, NDArray[np.uint64]]:
    """What `save_model` was given of them; folder holds a model that `load_model` accepts."""
    return dict(load_numpy_file(folder / "training_sentences.safetensors"))
