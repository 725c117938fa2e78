"""What a model attends to while it translates: every layer, every head, nothing averaged, no padding.

The chosen translation is fed in once more, whole (teacher forcing). A causal mask, or recurrence itself, makes this
pass see exactly what step-by-step decoding saw, and it serves greedy and beam search alike.
"""

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file

from passerelle.data.special import BOS
from passerelle.decoding.translate import Translation, encode_sources, pad_sources
from passerelle.files import write_json
from passerelle.model_folder import LoadedModel
from passerelle.nn.model import Seq2Seq
from passerelle.nn.recording import record_attention

AXES = {
    "encoder": ("layer", "head", "source_tokens", "source_tokens"),
    "decoder_self": ("layer", "head", "target_tokens", "target_tokens"),
    "cross": ("layer", "head", "target_tokens", "source_tokens"),
}
"""Kind of attention -> what the four dimensions of its weights count; the last sums to one."""

MOST_NAME_CHARACTERS = 40


@dataclass(frozen=True)
class AttentionMap:
    """The attention weights of one sentence, with L layers, H heads, S source and T target tokens."""

    source: str
    translation: str
    source_tokens: tuple[str, ...]
    """(S,), as sub-word pieces, the end of the sentence last."""
    target_tokens: tuple[str, ...]
    """(T,), what the decoder was given, the beginning of the sentence first."""
    predicted_tokens: tuple[str, ...]
    """(T,), what it chose next at each of them: the translation."""
    weights: dict[str, NDArray[np.float32]]
    """encoder (L, H, S, S), decoder_self (L, H, T, T), cross (L, H, T, S): query before key.
    A recurrent model has cross alone, with L = H = 1."""


@torch.inference_mode()
def attention_map(loaded: LoadedModel, translation: Translation) -> AttentionMap:
    """The attention behind `translation`, which must be this model's; ValueError where it has no tokens."""
    [source] = encode_sources(loaded, [translation.source])
    if not source:
        raise ValueError(f"{translation.source!r}: no text, so nothing to attend to; leave the sentence out")
    given = [BOS, *translation.ids[:-1]]
    model: Seq2Seq = loaded.model
    with record_attention(loaded.model) as tape:
        memory = model.encode(*pad_sources([source], model.output.weight.device))
        target_in = torch.tensor([given], device=model.output.weight.device)
        model.decode_hidden(target_in, memory, model.start(memory))
    return AttentionMap(
        source=translation.source,
        translation=translation.text,
        source_tokens=tuple(loaded.tokenizer.pieces(source)),
        target_tokens=tuple(loaded.tokenizer.pieces(given)),
        predicted_tokens=tuple(loaded.tokenizer.pieces(translation.ids)),
        weights={kind: weights for kind in AXES if (weights := _stacked(tape, kind)) is not None},
    )


def write_attention_map(attention: AttentionMap, folder: Path, name: str) -> None:
    """Write `<name>.safetensors`, the weights in float32, and `<name>.json`, the tokens and what axes mean."""
    save_file(attention.weights, folder / f"{name}.safetensors")
    content = {
        "source": attention.source,
        "translation": attention.translation,
        "source_tokens": attention.source_tokens,
        "target_tokens": attention.target_tokens,
        "predicted_tokens": attention.predicted_tokens,
        "axes": {kind: AXES[kind] for kind in attention.weights},
    }
    write_json(folder / f"{name}.json", content)


def file_name(number: int, sentence: str) -> str:
    """A name for the files of a sentence, the same on every system: 4, "I'm home." -> `04-i-m-home`."""
    plain = unicodedata.normalize("NFKD", sentence).encode("ascii", "ignore").decode().lower()
    words = re.sub("[^a-z0-9]+", "-", plain)[:MOST_NAME_CHARACTERS].strip("-")
    return f"{number:02d}-{words or 'sentence'}"


def alignment(attention: AttentionMap) -> list[tuple[str, str, float]]:
    """For each token of the translation, the source token it attends to most, and how much of the whole.

    That is the mean over all layers and heads: a summary, which hides what single heads do.
    """
    mean = attention.weights["cross"].mean(axis=(0, 1))  # (T, S)
    rows = zip(attention.predicted_tokens, mean.argmax(1), mean.max(1), strict=True)
    return [(token, attention.source_tokens[best], float(weight)) for token, best, weight in rows]


def _stacked(tape: dict[str, list[torch.Tensor]], kind: str) -> NDArray[np.float32] | None:
    """(L, H, Q, K) of the one sentence, or None where the model has no attention of this kind."""
    layers: list[torch.Tensor] = []
    while f"{kind}.{len(layers)}" in tape:
        # One call, or one for each query
        weights = torch.cat(tape[f"{kind}.{len(layers)}"], dim=2)  # (1, H, Q, K)
        layers.append(weights[0].float().cpu())
    return torch.stack(layers).numpy() if layers else None
