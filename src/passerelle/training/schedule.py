"""Learning rate as a function of the step."""

import math

from passerelle.config import TrainingConfig


def learning_rate(step: int, config: TrainingConfig) -> float:
    """The rate of optimiser step `step` (from 0): a linear rise over warmup_steps, then the chosen decay.

    `constant` stays at the peak; `inverse_sqrt` falls with 1 / sqrt(step) (Vaswani et al. 2017, section 5.3);
    `cosine` and `linear` reach zero after max_steps.
    """
    peak, warmup = config.learning_rate, config.warmup_steps
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    if config.schedule == "constant":
        return peak
    if config.schedule == "inverse_sqrt":
        return peak * math.sqrt((warmup + 1) / (step + 1))
    progress = (step - warmup) / (config.max_steps - warmup)
    if config.schedule == "linear":
        return peak * (1.0 - progress)
    return peak * 0.5 * (1.0 + math.cos(math.pi * progress))
