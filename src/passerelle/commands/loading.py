"""The model that a command was given, and how its pipeline decodes."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from passerelle.config import DecodingConfig, EvaluateParams, load_params

if TYPE_CHECKING:
    from passerelle.model_folder import LoadedModel


def add_model(command: argparse.ArgumentParser) -> None:
    """The argument `--model`."""
    command.add_argument("--model", type=Path, default=Path("model"), help="folder of the model (model)")
    command.epilog = (
        "The section decoding of params.yaml beside the model's folder says how translations are searched "
        "for; without that file, the defaults do."
    )


def load(folder: Path) -> tuple["LoadedModel", DecodingConfig]:
    """The model, and the settings of the pipeline that made it."""
    params = folder.resolve().parent / "params.yaml"
    decoding = load_params(EvaluateParams, params).decoding if params.is_file() else DecodingConfig()
    import torch

    from passerelle.model_folder import load_model

    return load_model(folder, torch.device("cuda" if torch.cuda.is_available() else "cpu")), decoding
