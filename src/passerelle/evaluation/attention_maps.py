"""What a model attends to while it translates: every layer, every head, nothing averaged, no padding.

The chosen translation is fed in once more, whole (teacher forcing). A causal mask, or recurrence itself, makes this
pass see exactly what step-by-step decoding saw, and it serves greedy and beam search alike.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
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
BATCH_SENTENCES = 64
"""Whose attention is computed together; 128 tokens long, that is 17 MB for each kind and layer of four heads."""


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


def attention_map(loaded: LoadedModel, translation: Translation) -> AttentionMap:
    """The attention behind `translation`, which must be this model's.

    Raises ValueError where it has no tokens, or several parts, which do not see each other.
    """
    [attention] = _attention_of_batch(loaded, [translation])
    return attention


def has_attention(translation: Translation) -> bool:
    """Whether it has one part, so that `attention_map` can tell of it."""
    return translation.num_parts == 1


def attention_maps(loaded: LoadedModel, translations: Sequence[Translation]) -> Iterator[AttentionMap]:
    """`attention_map` of each translation, in order; a batch of them is computed, and held, at a time."""
    for start in range(0, len(translations), BATCH_SENTENCES):
        yield from _attention_of_batch(loaded, translations[start : start + BATCH_SENTENCES])


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


@torch.inference_mode()
def _attention_of_batch(loaded: LoadedModel, translations: Sequence[Translation]) -> list[AttentionMap]:
    sources = [_source_ids(loaded, translation) for translation in translations]
    given = [[BOS, *translation.ids[:-1]] for translation in translations]
    model: Seq2Seq = loaded.model
    device = model.output.weight.device
    with record_attention(loaded.model) as tape:
        memory = model.encode(*pad_sources(sources, device))
        target_in, _ = pad_sources(given, device)
        model.decode_hidden(target_in, memory, model.start(memory))
    stacked = {kind: weights for kind in AXES if (weights := _stacked(tape, kind)) is not None}
    pieces = loaded.tokenizer.pieces
    maps = []
    for row, (translation, source) in enumerate(zip(translations, sources, strict=True)):
        num_tokens = {"source_tokens": len(source), "target_tokens": len(given[row])}
        sizes = {kind: [num_tokens[axis] for axis in AXES[kind][2:]] for kind in stacked}
        maps.append(
            AttentionMap(
                source=translation.source,
                translation=translation.text,
                source_tokens=tuple(pieces(source)),
                target_tokens=tuple(pieces(given[row])),
                predicted_tokens=tuple(pieces(translation.ids)),
                weights={
                    kind: stacked[kind][:, row, :, :queries, :keys].copy()
                    for kind, (queries, keys) in sizes.items()
                },
            )
        )
    return maps


def _source_ids(loaded: LoadedModel, translation: Translation) -> list[int]:
    """What the model read."""
    if translation.num_parts > 1:
        raise ValueError(
            f"{translation.source[:60]!r}: so long that it was translated in {translation.num_parts} parts, which do "
            "not attend to each other; leave it out, or raise decoding.max_source_tokens"
        )
    [source] = (
        [list(translation.source_ids)]
        if translation.source_ids
        else encode_sources(loaded, [translation.source])
    )
    if not source:
        raise ValueError(f"{translation.source!r}: no text, so nothing to attend to; leave the sentence out")
    return source


def _stacked(tape: dict[str, list[torch.Tensor]], kind: str) -> NDArray[np.float32] | None:
    """(L, B, H, Q, K), padding included, or None where the model has no attention of this kind."""
    layers: list[torch.Tensor] = []
    while f"{kind}.{len(layers)}" in tape:
        # One call, or one for each query
        weights = torch.cat(tape[f"{kind}.{len(layers)}"], dim=2)  # (B, H, Q, K)
        layers.append(weights.float().cpu())
    return torch.stack(layers).numpy() if layers else None
