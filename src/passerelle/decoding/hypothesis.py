"""One translation as token ids, and how its score is made from its log-probability."""

from dataclasses import dataclass
from typing import Literal, TypeVar

from torch import Tensor

LengthRule = Literal["plain", "wu"]
Length = TypeVar("Length", float, Tensor)


@dataclass(frozen=True)
class Hypothesis:
    """One translation as token ids."""

    ids: tuple[int, ...]
    """Generated tokens: without BOS, with EOS last where it is finished."""
    log_prob: float
    """Sum of the tokens' natural log-probabilities, EOS included."""
    score: float
    """log_prob / divisor of its length, where length = len(ids) counts EOS."""
    is_finished: bool
    """False where the maximum length was reached without EOS."""


def divisor(length: Length, length_penalty: float, length_rule: LengthRule) -> Length:
    """What the log-probability of a hypothesis of this length is divided by; grows with length.

    plain: length ** length_penalty. wu: ((5 + length) / 6) ** length_penalty (Wu et al. 2016, eq. 14).
    """
    match length_rule:
        case "plain":
            return length**length_penalty
        case "wu":
            return ((length + 5) / 6) ** length_penalty
