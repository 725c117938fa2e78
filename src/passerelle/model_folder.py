"""A trained model as a folder: all that inference needs, in formats that load no code."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ValidationError, model_validator
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_numpy_file
from safetensors.numpy import save_file as save_numpy_file
from safetensors.torch import load_file, save_file
from torch import Tensor

from passerelle.config import Hash, LanguagesConfig, ModelConfig, Section
from passerelle.data.tokenizer import Tokenizer, load_tokenizer
from passerelle.files import sha256_of_file, whole_folder, write_json
from passerelle.models import Model, build_model
from passerelle.params_file import fault_lines
from passerelle.plain_yaml import as_key, shown

FORMAT = 2
MAX_CONFIG_BYTES = 100_000
FILES = ("weights.safetensors", "tokenizer.model", "training_sentences.safetensors")


class ModelFolderConfig(Section):
    """What config.json says."""

    format: Literal[2]
    fingerprint: str
    languages: LanguagesConfig
    model: ModelConfig
    sha256: dict[Literal["weights.safetensors", "tokenizer.model", "training_sentences.safetensors"], Hash]

    @model_validator(mode="after")
    def _all_files_are_named(self) -> Self:
        if missing := sorted(set(FILES) - set(self.sha256)):
            raise ValueError(f"sha256 lacks {', '.join(missing)}")
        return self


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

    Raises ValueError where a file is missing, damaged or of another format, and where one does not fit another.
    """
    config = read_config(folder)
    for name, expected in config.sha256.items():
        found = sha256_of_file(folder / name) if (folder / name).is_file() else "no file"
        if found != expected:
            raise ValueError(
                f"{folder / name}: sha256 is {found}, but config.json expects {expected}; train again"
            )
    tokenizer = load_tokenizer(folder / "tokenizer.model")
    weights = _read_weights(folder / "weights.safetensors", config.model)
    model = build_model(config.model, tokenizer.vocab_size)
    _set_weights(folder / "weights.safetensors", model, weights)
    return LoadedModel(
        model=model.eval().to(device or torch.device("cpu")),
        tokenizer=tokenizer,
        languages=config.languages,
        fingerprint=config.fingerprint,
    )


def read_config(folder: Path) -> ModelFolderConfig:
    """The model's config.json; ValueError where there is none, or one of another format."""
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder}: not a model folder (no config.json); the stage `train` writes one")
    if path.stat().st_size > MAX_CONFIG_BYTES:
        raise ValueError(
            f"{path}: over {MAX_CONFIG_BYTES} bytes, so not what stage `train` writes; train again"
        )
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not valid JSON ({error}); train again") from None
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise ValueError(f"{path}: format {shown(found)}, but this version reads {FORMAT}; train again")
    try:
        return ModelFolderConfig.model_validate(content)
    except ValidationError as error:
        raise ValueError(f"{path}: {fault_lines(error, ModelFolderConfig)[0]}; train again") from None


def training_sentences(folder: Path) -> dict[str, NDArray[np.uint64]]:
    """What `save_model` was given of them; folder holds a model that `load_model` accepts."""
    path = folder / "training_sentences.safetensors"
    try:
        found = load_numpy_file(path)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ValueError(f"{path}: not a file of safetensors ({_short(error)}); train again") from None
    forms = {name: (array.dtype, array.ndim) for name, array in found.items()}
    if forms != {name: (np.dtype(np.uint64), 1) for name in ("source", "target")}:
        raise ValueError(f"{path}: has {shown(forms)}, not the hashes of source and target; train again")
    return dict(found)


def _read_weights(path: Path, config: ModelConfig) -> dict[str, Tensor]:
    """The weights in the file, finite numbers, and about as many as a model of this configuration has."""
    least = 4 * _least_numbers(config)
    if path.stat().st_size < least:
        raise ValueError(
            f"{path}: {path.stat().st_size} bytes, but weights that fit config.json are over {least}; train again"
        )
    try:
        weights = load_file(path)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ValueError(f"{path}: not a file of safetensors ({_short(error)}); train again") from None
    for name, tensor in weights.items():
        if tensor.dtype != torch.float32 or not tensor.isfinite().all():
            raise ValueError(f"{path}: {as_key(name)} is not all finite numbers in 32 bits; train again")
    return weights


def _least_numbers(config: ModelConfig) -> int:
    """Fewer weights no such model has, whatever its vocabulary: none is built that is larger than its file."""
    if config.name == "transformer":
        return config.num_layers * (12 * config.d_model**2 + 4 * config.d_model * config.d_ff)
    return config.num_layers * 6 * config.d_model**2


def _set_weights(path: Path, model: Model, weights: dict[str, Tensor]) -> None:
    """Give the model its weights; ValueError where they are not just those that it has."""
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    tied = expected.keys() - dict(model.named_parameters())  # other names of one parameter
    missing, unexpected = (
        sorted(expected.keys() - weights.keys() - tied),
        sorted(weights.keys() - expected.keys()),
    )
    if missing or unexpected:
        raise ValueError(f"{path}: missing {shown(missing)}, unexpected {shown(unexpected)}")
    for name, tensor in weights.items():
        if tuple(tensor.shape) != expected[name]:
            raise ValueError(
                f"{path}: does not fit config.json: {name} has shape {tuple(tensor.shape)}, not {expected[name]}"
            )
    model.load_state_dict(weights, strict=False)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
