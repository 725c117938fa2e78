"""Statistics of heads whose answers are known, and against scipy on random ones."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from passerelle.evaluation.attention_maps import AttentionMap
from passerelle.evaluation.attention_statistics import HeadStatistics, attention_statistics

L, H = 2, 3


def random_weights(seed: int, *shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1]).astype(np.float32)


def tokens(number: int) -> tuple[str, ...]:
    return tuple(f"▁{index}" for index in range(number))


def attention(weights: dict[str, NDArray[np.float32]], num_source: int, num_target: int) -> AttentionMap:
    return AttentionMap("s", "t", tokens(num_source), tokens(num_target), tokens(num_target), weights)


def only(kind: str, weights: NDArray[np.floating]) -> HeadStatistics:
    """The statistics of a single head of one kind."""
    queries, keys = weights.shape
    num_source, num_target = (keys, queries) if kind == "cross" else (keys, keys)
    stack = weights.astype(np.float32)[None, None]
    [found] = attention_statistics([attention({kind: stack}, num_source, num_target)])
    return found


def test_attention_to_itself_alone_is_sharp_near_and_on_the_diagonal() -> None:
    found = only("encoder", np.eye(5))
    assert found == HeadStatistics("encoder", 1, 1, 0.0, 0.0, 0.0, 0.0, 1.0, 0.2, None, None)


def test_even_attention_has_the_highest_entropy() -> None:
    found = only("encoder", np.full((4, 4), 0.25))
    assert found.entropy == pytest.approx(math.log(4))
    assert found.relative_entropy == pytest.approx(1.0)
    assert found.distance_tokens == pytest.approx(np.abs(np.subtract.outer(range(4), range(4))).mean())
    assert found.distance == pytest.approx(found.distance_tokens / 4)
    assert (found.on_diagonal, found.on_end) == pytest.approx((0.25, 0.25))


def test_causal_attention_is_measured_by_the_keys_that_a_query_has() -> None:
    causal = np.tril(np.ones((4, 4)))
    found = only("decoder_self", causal / causal.sum(1, keepdims=True))
    assert found.relative_entropy == pytest.approx(1.0)  # the first query has no choice, and does not count
    assert found.on_begin == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert found.on_end is None


def test_a_sentence_of_one_token_has_no_relative_entropy() -> None:
    assert only("encoder", np.ones((1, 1))).relative_entropy is None


def test_the_diagonal_of_cross_attention_is_at_the_same_share_of_the_length() -> None:
    stretched = np.zeros((6, 3))
    stretched[np.arange(6), [0, 0, 1, 1, 2, 2]] = 1.0
    found = only("cross", stretched)
    assert found.on_diagonal == pytest.approx(1.0)
    assert found.distance == pytest.approx(1 / 12)  # a quarter of a source token, of three
    assert found.distance_tokens is None
    assert found.on_end == pytest.approx(1 / 3)
    shrunk = np.zeros((3, 6))
    shrunk[np.arange(3), [1, 3, 5]] = 1.0
    assert only("cross", shrunk).on_diagonal == pytest.approx(1.0)


def test_every_query_of_every_sentence_counts_the_same() -> None:
    sharp = np.eye(2, dtype=np.float32)[None, None]
    even = np.full((1, 1, 6, 6), 1 / 6, dtype=np.float32)
    [found] = attention_statistics([attention({"encoder": sharp}, 2, 1), attention({"encoder": even}, 6, 1)])
    assert found.entropy == pytest.approx(6 / 8 * math.log(6))
    assert found.on_end == pytest.approx((0 + 1 + 6 / 6) / 8)


def test_heads_that_look_alike_do_not_diverge_and_others_do() -> None:
    weights = np.zeros((1, 3, 2, 4), dtype=np.float32)
    weights[:, :2, :, 0] = 1.0
    weights[:, 2, :, 3] = 1.0
    found = attention_statistics([attention({"cross": weights}, 4, 2)])
    assert [head.divergence for head in found] == pytest.approx([0.5, 0.5, 1.0])


def test_statistics_are_those_of_scipy() -> None:
    maps = [
        attention({"encoder": random_weights(1, L, H, 5, 5), "cross": random_weights(2, L, H, 4, 5)}, 5, 4),
        attention({"encoder": random_weights(3, L, H, 7, 7), "cross": random_weights(4, L, H, 3, 7)}, 7, 3),
    ]
    found = attention_statistics(iter(maps))
    assert [(head.kind, head.layer, head.head) for head in found] == [
        (kind, layer, head) for kind in ("encoder", "cross") for layer in (1, 2) for head in (1, 2, 3)
    ]
    for head in found:
        rows = [one.weights[head.kind][head.layer - 1].astype(float) for one in maps]  # each (H, Q, K)
        own = [row for one in rows for row in one[head.head - 1]]
        assert head.entropy == pytest.approx(np.mean([entropy(row) for row in own]))
        others = [
            jensenshannon(one[head.head - 1, query], one[other, query], base=2) ** 2
            for one in rows
            for query in range(one.shape[1])
            for other in range(H)
            if other != head.head - 1
        ]
        assert head.divergence == pytest.approx(np.mean(others), abs=1e-6)


def test_order_of_sentences_does_not_matter() -> None:
    maps = [attention({"encoder": random_weights(n, L, H, 3 + n, 3 + n)}, 3 + n, 1) for n in range(3)]
    rows = zip(attention_statistics(maps), attention_statistics(maps[::-1]), strict=True)
    for forward, backward in rows:
        assert replace(forward, entropy=0.0).on_diagonal == pytest.approx(backward.on_diagonal)
        assert forward.entropy == pytest.approx(backward.entropy)


def test_nothing_to_count_is_refused() -> None:
    with pytest.raises(ValueError, match="no attention to count: no sentence has a translation of one part"):
        attention_statistics([])
