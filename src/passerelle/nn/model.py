"""The protocol that training, decoding and evaluation know a model by.

Shapes: B batch, S source length, T target length, D width, V vocabulary.
"""

from typing import Any, Protocol, Self

from torch import Tensor, nn


class Rows(Protocol):
    """A value with one row for each sentence of a batch."""

    def reorder(self, index: Tensor) -> Self:
        """The rows named by index (N,), in that order; a row may be named several times, or never."""
        ...


class Seq2Seq(Protocol):
    """An encoder-decoder. Memory and state are values of the model's own kind, opaque to its users."""

    output: nn.Linear
    """From hidden states (..., D) to logits (..., V)."""

    def encode(self, source: Tensor, source_lengths: Tensor) -> Any:
        """source (B, S), source_lengths (B,) -> memory (Rows): all that the decoder needs of the source."""
        ...

    def start(self, memory: Any) -> Any:
        """The decoder's state (Rows) before the first target token."""
        ...

    def decode_hidden(self, target_in: Tensor, memory: Any, state: Any) -> tuple[Tensor, Any]:
        """target_in (B, T), the tokens after those in state -> hidden states (B, T, D), and the state after them."""
        ...

    def decode(self, target_in: Tensor, memory: Any, state: Any) -> tuple[Tensor, Any]:
        """As `decode_hidden`, with logits (B, T, V)."""
        ...
