"""What each attention head does, in a few numbers, over many sentences.

Every query of every sentence counts the same. Nothing is merged to words: this is what the model computes with.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passerelle.evaluation.attention_maps import AXES, AttentionMap

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeadStatistics:
    """Means over the queries of one head; None where a measure does not apply."""

    kind: str
    layer: int
    """From 1, as in the pictures."""
    head: int
    """From 1."""
    entropy: float
    """In nats; 0 looks at one key, ln(number of keys) at all alike."""
    relative_entropy: float | None
    """Entropy over its highest possible value, 0 to 1; queries with one key to choose from have none."""
    distance: float
    """Mean |position of query - position of key|, each as a share of its sequence's length: 0 to 1.
    So source and target of unlike length are comparable."""
    distance_tokens: float | None
    """Of self-attention: the same in tokens."""
    on_diagonal: float
    """Share of weight on the key at the query's own place; cross-attention: at the same share of the length."""
    on_end: float | None
    """Share of weight on the end of the source sentence, `</s>`."""
    on_begin: float | None
    """Of decoder self-attention, whose keys have no end: share of weight on the beginning, `<s>`."""
    divergence: float | None
    """Mean Jensen-Shannon divergence from the other heads of its layer, in bits: 0 looks where they look, 1 nowhere
    that they do (Clark et al. 2019, section 6). None for a head that is alone."""


def attention_statistics(maps: Iterable[AttentionMap]) -> list[HeadStatistics]:
    """One entry for each kind, layer and head, in that order. Raises ValueError where there are no maps."""
    sums: dict[str, dict[str, Floats]] = {}
    counts: dict[str, dict[str, int]] = {}
    for attention in maps:
        for kind, weights in attention.weights.items():
            for name, values in _measures(kind, weights.astype(np.float64)):
                kept = sums.setdefault(kind, {})
                kept[name] = kept.get(name, 0.0) + values.sum(-1)
                numbers = counts.setdefault(kind, {})
                numbers[name] = numbers.get(name, 0) + values.shape[-1]
    if not sums:
        raise ValueError("no attention to count: no sentence has a translation of one part")
    return [
        HeadStatistics(kind, layer + 1, head + 1, **_means(sums[kind], counts[kind], layer, head))
        for kind in AXES
        if kind in sums
        for layer, head in np.ndindex(sums[kind]["entropy"].shape)
    ]


def _means(sums: dict[str, Floats], counts: dict[str, int], layer: int, head: int) -> dict[str, Any]:
    names = [field.name for field in fields(HeadStatistics) if field.name not in ("kind", "layer", "head")]
    return {
        name: float(sums[name][layer, head]) / counts[name] if counts.get(name) else None for name in names
    }


def _measures(kind: str, weights: Floats) -> Iterator[tuple[str, Floats]]:
    """Name and values (L, H, Q) of each measure; weights (L, H, Q, K)."""
    num_queries, num_keys = weights.shape[2:]
    entropy = _entropy(weights)
    yield "entropy", entropy
    num_choices = np.full(num_queries, num_keys) if kind != "decoder_self" else np.arange(1, num_queries + 1)
    has_choice = num_choices > 1
    yield "relative_entropy", entropy[..., has_choice] / np.log(num_choices[has_choice])
    query, key = np.arange(num_queries)[:, None], np.arange(num_keys)
    if kind == "cross":
        # The middle of each token's stretch
        distance = np.abs((query + 0.5) / num_queries - (key + 0.5) / num_keys)
    else:
        distance = np.abs(query - key) / num_keys
        yield "distance_tokens", (weights * np.abs(query - key)).sum(-1)
    yield "distance", (weights * distance).sum(-1)
    same_place = (2 * np.arange(num_queries) + 1) * num_keys // (2 * num_queries)
    yield "on_diagonal", weights[:, :, np.arange(num_queries), same_place]
    if kind == "decoder_self":
        yield "on_begin", weights[..., 0]
    else:
        yield "on_end", weights[..., -1]
    if weights.shape[1] > 1:
        yield "divergence", _divergence(weights, entropy)


def _entropy(weights: Floats) -> Floats:
    """(..., K) -> (...), in nats."""
    return -(weights * np.log(np.where(weights > 0.0, weights, 1.0))).sum(-1)


def _divergence(weights: Floats, entropy: Floats) -> Floats:
    """Mean divergence of each head from the others of its layer; (L, H, Q, K), (L, H, Q) -> (L, H, Q), in bits."""
    num_heads = weights.shape[1]
    first, second = map(list, zip(*combinations(range(num_heads), 2), strict=True))
    mixed = _entropy((weights[:, first] + weights[:, second]) / 2)  # (L, pairs, Q)
    of_pair = mixed - (entropy[:, first] + entropy[:, second]) / 2
    total = np.zeros_like(entropy)
    for pair in range(len(first)):
        total[:, first[pair]] += of_pair[:, pair]
        total[:, second[pair]] += of_pair[:, pair]
    return np.maximum(total / (num_heads - 1) / math.log(2), 0.0)
