"""`params.yaml` of this example as frozen, strict, typed values."""

from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from passerelle.config import ParamsError, Section


class DataConfig(Section):
    """Points to learn from and places to estimate at (stage `data`)."""

    seed: NonNegativeInt
    """Of the places of the training points and their noise."""
    num_points: Annotated[int, Field(ge=2)]
    """Training points; each is estimated from the others."""
    highest: PositiveFloat
    """Places lie between 0 and this."""
    noise: NonNegativeFloat
    """Standard deviation of the training values about the true function."""
    test_step: PositiveFloat
    """Distance between the places where the estimates are compared with the true function."""

    @model_validator(mode="after")
    def _step_fits(self) -> Self:
        if self.test_step > self.highest:
            raise ValueError(f"test_step must be at most highest={self.highest}, but is {self.test_step}")
        return self


class FitConfig(Section):
    """Training of the kernel's one parameter (stage `fit`)."""

    initial_w: PositiveFloat
    """Before training; at 0 there would be no gradient."""
    learning_rate: PositiveFloat
    """Of gradient descent."""
    num_epochs: PositiveInt
    """Steps, each on all points."""


class Params(Section):
    """The whole of `params.yaml`."""

    data: DataConfig
    fit: FitConfig


class DataParams(Section):
    """What stage `data` receives."""

    data: DataConfig


class FitParams(Section):
    """What stage `fit` receives."""

    fit: FitConfig


StageParams = TypeVar("StageParams", bound=Section)


def load_params(stage: type[StageParams], path: Path = Path("params.yaml")) -> StageParams:
    """The sections that `stage` names, after the whole file has been checked.

    Raises ParamsError with one line for each fault: file, key, what is allowed, value.
    """
    try:
        params = Params.model_validate(YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8")))
    except YAMLError as error:
        raise ParamsError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        lines = [
            f"{path}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}, but is {fault['input']!r}"
            for fault in error.errors()
        ]
        raise ParamsError("\n".join(lines)) from None
    return stage.model_validate({name: getattr(params, name) for name in stage.model_fields})
