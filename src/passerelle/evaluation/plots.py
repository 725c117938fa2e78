"""Attention as pictures: grids of heatmaps with the sentence's words on the axes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from passerelle.evaluation.attention_maps import AttentionMap
from passerelle.evaluation.heatmaps import save_png, show_heatmaps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {
    "encoder": "Encoder self-attention",
    "decoder_self": "Decoder self-attention",
    "cross": "Encoder-decoder attention",
}


def attention_figure(attention: AttentionMap, kind: str) -> "Figure":
    """Layers x heads of one kind of attention, with the sentence's words on the axes.

    A row of encoder-decoder attention is named after the token given and the one chosen there, its answer.
    """
    source, given = readable(attention.source_tokens), readable(attention.target_tokens)
    chosen = readable(attention.predicted_tokens)
    queries, keys = {
        "encoder": (source, source),
        "decoder_self": (given, given),
        "cross": ([f"{before} → {after}" for before, after in zip(given, chosen, strict=True)], source),
    }[kind]
    num_layers, num_heads = attention.weights[kind].shape[:2]
    return show_heatmaps(
        attention.weights[kind],
        x_label="keys: " + ("target" if kind == "decoder_self" else "source"),
        y_label="queries: " + ("source" if kind == "encoder" else "target"),
        x_ticks=keys,
        y_ticks=queries,
        column_titles=[f"Head {head + 1}" for head in range(num_heads)] if num_heads > 1 else (),
        row_labels=[f"Layer {layer + 1}" for layer in range(num_layers)] if num_layers > 1 else (),
        title=f"{TITLES[kind]}: {attention.source} → {attention.translation}",
    )


def write_pictures(attention: AttentionMap, folder: Path, name: str) -> list[Path]:
    """Draw every kind of attention as `<name>.<kind>.png`; return the paths."""
    paths = []
    for kind in attention.weights:
        paths.append(folder / f"{name}.{kind}.png")
        save_png(attention_figure(attention, kind), paths[-1])
    return paths


def readable(pieces: Sequence[str]) -> list[str]:
    """Sub-word pieces as tick labels: without the mark of a space, which alone shows as `␣`."""
    return [piece.replace("\u2581", "") or "␣" for piece in pieces]
