"""The model that a command was given, and how its pipeline decodes."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from passerelle.config import DecodingConfig, EvaluateParams, EvaluationConfig
from passerelle.params_file import load_params

if TYPE_CHECKING:
    from passerelle.model_folder import LoadedModel

EPILOG = (
    "The section decoding of params.yaml beside the model's folder says how translations are searched for; without "
    "that file, the defaults do."
)


def add_model(command: argparse.ArgumentParser) -> None:
    """The argument `--model`."""
    command.add_argument("--model", type=Path, default=Path("model"), help="folder of the model (model)")
    command.epilog = EPILOG


def load(folder: Path, *others: Path) -> tuple["LoadedModel", DecodingConfig]:
    """The model, and the settings of the pipeline that made it; with others beside it, all of them as one model."""
    decoding = load_decoding(folder)
    import torch

    from passerelle.decoding.ensemble import load_ensemble

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return load_ensemble([folder, *others], device), decoding


def settings(params: Path) -> EvaluateParams:
    """The sections of the file that tell how to translate and score; without the file, the defaults."""
    if params.is_file():
        return load_params(EvaluateParams, params)
    return EvaluateParams(decoding=DecodingConfig(), evaluation=EvaluationConfig())


def load_decoding(folder: Path) -> DecodingConfig:
    """The settings of the pipeline that made the model in the folder."""
    return settings(folder.resolve().parent / "params.yaml").decoding
