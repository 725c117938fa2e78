"""`params.yaml` of this example as frozen, strict, typed values."""

from typing import Annotated, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from passerelle.config import LARGEST, NonNegativeInt, PositiveInt, Section


class DataConfig(Section):
    """Points to learn from and places to estimate at (stage `data`)."""

    seed: NonNegativeInt
    """Of the places of the training points and their noise."""
    num_points: Annotated[int, Field(ge=2, le=LARGEST)]
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
