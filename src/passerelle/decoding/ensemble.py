"""Several models as one, whose probabilities are the mean of theirs.

Shapes: B batch, S source length, T target length, V vocabulary, M models.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from passerelle.model_folder import LoadedModel, load_model
from passerelle.models import Model
from passerelle.nn.model import Seq2Seq


@dataclass(frozen=True)
class Together:
    """Memory or state: one of each model."""

    parts: tuple[Any, ...]

    def reorder(self, index: Tensor) -> "Together":
        """Rows gathered along the batch, in all of them."""
        return Together(tuple(part.reorder(index) for part in self.parts))


class Ensemble:
    """Models of any kinds over one vocabulary; implements `nn.model.Seq2Seq`."""

    def __init__(self, models: Sequence[Seq2Seq]) -> None:
        self.models = tuple(models)
        self.output: nn.Linear = self.models[0].output
        """The first model's; it tells the device, and nothing else is asked of it."""

    def encode(self, source: Tensor, source_lengths: Tensor) -> Together:
        """source (B, S), source_lengths (B,) -> memory."""
        return Together(tuple(model.encode(source, source_lengths) for model in self.models))

    def start(self, memory: Together) -> Together:
        """The state before the first target token."""
        return Together(tuple(model.start(part) for model, part in self._with(memory)))

    def decode_hidden(self, target_in: Tensor, memory: Together, state: Together) -> tuple[Tensor, Together]:
        """Raises NotImplementedError: each model has hidden states of its own."""
        raise NotImplementedError("an ensemble has no hidden states; ask it for logits (decode)")

    def decode(self, target_in: Tensor, memory: Together, state: Together) -> tuple[Tensor, Together]:
        """target_in (B, T) -> logits (B, T, V), the logarithm of the mean probability, and the state after it."""
        log_probs, states = [], []
        for (model, part), before in zip(self._with(memory), state.parts, strict=True):
            logits, after = model.decode(target_in, part, before)
            log_probs.append(logits.float().log_softmax(-1))
            states.append(after)
        mean = torch.stack(log_probs).logsumexp(0) - math.log(len(log_probs))  # (M, B, T, V) -> (B, T, V)
        return mean, Together(tuple(states))

    def _with(self, rows: Together) -> list[tuple[Seq2Seq, Any]]:
        return list(zip(self.models, rows.parts, strict=True))


def load_ensemble(folders: Sequence[Path], device: torch.device | None = None) -> LoadedModel:
    """The model in the folder, or where there are several, all of them as one.

    Raises ValueError like `load_model`, and where two differ in tokenizer or languages.
    """
    first, *others = [load_model(folder, device) for folder in folders]
    if not others:
        return first
    for folder, other in zip(folders[1:], others, strict=True):
        if other.tokenizer.sha256 != first.tokenizer.sha256:
            raise ValueError(
                f"{folder}: its tokenizer is not that of {folders[0]} (sha256 {other.tokenizer.sha256[:12]}…, not "
                f"{first.tokenizer.sha256[:12]}…); models translate together only where they share one"
            )
        if other.languages != first.languages:
            raise ValueError(
                f"{folder}: translates {_pair(other)}, but {folders[0]} {_pair(first)}; leave one of them out"
            )
    models = [cast(Seq2Seq, loaded.model) for loaded in (first, *others)]
    # Search and forced decoding ask a model for nothing that an ensemble lacks.
    together = cast(Model, Ensemble(models))
    return replace(first, model=together, fingerprint="+".join(m.fingerprint for m in (first, *others)))


def _pair(loaded: LoadedModel) -> str:
    return f"{loaded.languages.source} to {loaded.languages.target}"
