"""What a Transformer's decoder knows: source sentences, and target tokens so far. Values that reorder themselves.

Shapes: B rows of a batch, H heads, K keys, E width of a head, N source sentences, S source length.
"""

from dataclasses import dataclass

from torch import Tensor

from passerelle.nn.sharing import Sharing, share

KeysAndValues = tuple[Tensor, Tensor]  # each (B, H, K, E)
LEAST_USED = 0.75
"""Share of the source sentences in memory that rows of the batch attend to; below it the others are dropped."""


@dataclass(frozen=True)
class TransformerMemory:
    """What the decoder needs of the source sentences; N of them, which the rows of a batch may share."""

    mask: Tensor
    """(N, S), True where a source token is real."""
    layers: tuple[KeysAndValues, ...]
    """Keys and values of the encoder's output, for each decoder layer; B is N."""
    sharing: Sharing | None = None
    """Which row attends to which sentence; None where each has its own, in order."""

    def reorder(self, index: Tensor) -> "TransformerMemory":
        """Rows gathered along the batch. The sentences themselves are copied only when a quarter has no row left."""
        sentence = index if self.sharing is None else self.sharing.sentence[index]
        used, position = sentence.unique(return_inverse=True)
        if used.numel() > LEAST_USED * self.mask.size(0):
            return TransformerMemory(self.mask, self.layers, share(sentence, self.mask.size(0)))
        mask, layers = self.mask.index_select(0, used), _reorder(self.layers, used)
        return TransformerMemory(mask, layers, share(position, used.numel()))


@dataclass(frozen=True)
class TransformerState:
    """What the decoder has seen of the target sentences: keys and values of each layer's self-attention."""

    num_tokens: int
    layers: tuple[KeysAndValues, ...]

    def reorder(self, index: Tensor) -> "TransformerState":
        """Rows gathered along the batch."""
        return TransformerState(self.num_tokens, _reorder(self.layers, index))


def _reorder(layers: tuple[KeysAndValues, ...], index: Tensor) -> tuple[KeysAndValues, ...]:
    # On a CPU in a fifth of the time of key[index]
    return tuple((key.index_select(0, index), value.index_select(0, index)) for key, value in layers)
