"""The learning rate at hand-computed steps."""

import pytest

from passerelle.config import TrainingConfig
from passerelle.training.schedule import learning_rate


def config(schedule: str) -> TrainingConfig:
    return TrainingConfig(
        schedule=schedule,
        learning_rate=0.4,
        warmup_steps=3,
        max_steps=103,
        validate_every=1,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt", "cosine", "linear"])
def test_warmup_rises_in_equal_steps_to_the_peak(schedule: str) -> None:
    rates = [learning_rate(step, config(schedule)) for step in range(4)]
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize(
    ("schedule", "at_28", "at_53", "at_103"),
    [
        ("constant", 0.4, 0.4, 0.4),
        ("linear", 0.3, 0.2, 0.0),
        ("cosine", 0.3414214, 0.2, 0.0),
        ("inverse_sqrt", 0.1485563, 0.1088662, 0.0784465),
    ],
)
def test_decay(schedule: str, at_28: float, at_53: float, at_103: float) -> None:
    rates = [learning_rate(step, config(schedule)) for step in (28, 53, 103)]
    assert rates == pytest.approx([at_28, at_53, at_103], abs=1e-7)
