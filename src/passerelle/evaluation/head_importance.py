"""What each attention head is worth: how much less likely the references are without it.

One head at a time is masked, as Michel et al. (2019, section 3) do: its output is zero, all else stays, and
nothing is trained anew. The measure is the loss of the references under forced decoding, which is cheap and has no
noise of search; it is not BLEU, and heads that stand in for each other all seem to be worth little.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from passerelle.decoding.forced import score
from passerelle.decoding.translate import encode_sources
from passerelle.evaluation.attention_maps import AXES
from passerelle.model_folder import LoadedModel
from passerelle.nn.attention import AttentionWeights
from passerelle.nn.model import Seq2Seq
from passerelle.nn.recording import place, record_attention


@dataclass(frozen=True)
class HeadImportance:
    """What masking one head does."""

    kind: str
    layer: int
    """From 1."""
    head: int
    """From 1."""
    loss_increase: float
    """Nats for each token of the references; below zero where the references are likelier without the head."""


@dataclass(frozen=True)
class Importance:
    """Of all heads of a model."""

    heads: tuple[HeadImportance, ...]
    loss: float
    """With all heads: nats for each token of the references, their ends counted."""
    num_sentences: int


def head_importance(loaded: LoadedModel, sources: Sequence[str], references: Sequence[str]) -> Importance:
    """Mask each head by itself; references has one translation for each source.

    Sentences without text are left out. Raises ValueError where none has any.
    """
    encoded = encode_sources(loaded, sources)
    pairs = [
        (source, reference)
        for source, reference, ids in zip(sources, references, encoded, strict=True)
        if ids and reference.strip()
    ]
    if not pairs:
        raise ValueError("no sentences with text to measure the heads on")
    loss = _loss(loaded, pairs)
    heads = []
    for kind, layer, head in _places(loaded):
        with masked_head(loaded.model, kind, layer, head):
            heads.append(HeadImportance(kind, layer + 1, head + 1, _loss(loaded, pairs) - loss))
    return Importance(tuple(heads), loss, len(pairs))


@contextmanager
def masked_head(model: torch.nn.Module, kind: str, layer: int, head: int) -> Iterator[None]:
    """Within the block the head, counted from 0, attends to nothing, so that its output is zero."""

    def mask(_module: torch.nn.Module, _inputs: object, weights: Tensor) -> Tensor:
        weights = weights.clone()
        (weights if weights.dim() == 4 else weights.unsqueeze(1))[:, head] = 0.0
        return weights

    [module] = [
        module
        for name, module in model.named_modules()
        if isinstance(module, AttentionWeights) and place(name) == f"{kind}.{layer}"
    ]
    handle = module.register_forward_hook(mask)
    try:
        yield
    finally:
        handle.remove()


@torch.inference_mode()
def _places(loaded: LoadedModel) -> list[tuple[str, int, int]]:
    """Kind, layer and head of all heads, as a pass over one token shows them."""
    model: Seq2Seq = loaded.model
    token = torch.zeros(1, 1, dtype=torch.long, device=model.output.weight.device)
    with record_attention(loaded.model) as tape:
        memory = model.encode(token, torch.ones_like(token[0]))
        model.decode_hidden(token, memory, model.start(memory))
    numbers = {name: calls[0].size(1) for name, calls in tape.items()}
    names = sorted(numbers, key=lambda name: (list(AXES).index(name.split(".")[0]), int(name.split(".")[1])))
    return [
        (name.split(".")[0], int(name.split(".")[1]), head) for name in names for head in range(numbers[name])
    ]


def _loss(loaded: LoadedModel, pairs: Sequence[tuple[str, str]]) -> float:
    """Nats for each token of the references."""
    log_probs = score(loaded, [source for source, _ in pairs], [reference for _, reference in pairs])
    return -sum(map(sum, log_probs)) / sum(map(len, log_probs))
