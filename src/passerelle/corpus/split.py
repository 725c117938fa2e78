"""Train, valid and test without a leak, and the same again when the corpus grows.

Two pairs belong together when they share a sentence of either language, compared by letters and digits alone
(case-folded; punctuation, symbols and spaces removed, accents kept: "Every day!" is "everyday"; sentences
without any letter or digit are all alike). A group is a connected component of that relation, and goes whole
to one side; so no sentence stands on two sides.

A group's name is the hash of its smallest source sentence. Groups are taken in the order of a hash of seed
and name: first for the test, then for valid, and the rest for training. New rows change neither name nor
order of the groups they do not touch. When the corpus grows, the test keeps its size by reaching less far in
that order; what it gives up goes to valid, not to training, until the corpus has doubled. Only a group that
new rows join to another, or give a smaller source sentence, may change sides. Measured: when fra-eng grows
from a random 80 % of its rows to all of them, 82 % of the old test sentences stay in the test, 15 % go to
valid and 2 % to training.

Sizes: the test takes groups until it has the sentences asked for. A group larger than a tenth of that always
goes to training, so a side exceeds its size by a tenth at most, and on fra-eng by a few sentences.
"""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from passerelle.config import SplitConfig

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

TRAIN, VALID, TEST, SHARING, SPARE = range(5)
"""Sides; the last two are none, and only rows behind `split.train_lines` are there."""

_TOGETHER = 65_536


def comparison_keys(sentences: Any) -> Any:
    """Arrow array of strings -> Arrow array: case-folded, letters (with their marks) and digits only."""
    parts = []
    for first in range(0, len(sentences), _TOGETHER):  # all at once as Python's strings, they take more room
        some = sentences.slice(first, _TOGETHER).to_pylist()
        folded = pa.array([sentence.casefold() for sentence in some], pa.string())
        parts.append(pc.replace_substring_regex(folded, r"[^\p{L}\p{M}\p{N}]+|[\x{FE00}-\x{FE0F}]+", ""))
    return pa.chunked_array(parts, pa.string()).combine_chunks()


def connected_groups(source_ids: Integers, target_ids: Integers) -> Integers:
    """(N,) sentence numbers of each side -> (N,) the first row of each row's connected component.

    Every row repeatedly takes the smallest label among the rows that share its source, then its target.
    """
    labels = np.arange(len(source_ids))
    while True:
        before = labels
        for ids in (source_ids, target_ids):
            smallest = np.full(ids.max(initial=-1) + 1, len(labels))
            np.minimum.at(smallest, ids, labels)
            labels = smallest[ids]
        labels = labels[labels]  # a label is a row of the same group, so its own label is a shortcut
        if np.array_equal(labels, before):
            return labels


def group_names(groups: Integers, source_keys: Any) -> tuple[list[str], Integers]:
    """Name of each group (hex), and (N,) the number of each row's group in that list.

    groups (N,) as from `connected_groups`; source_keys: N strings. The name hashes the group's smallest key.
    """
    keys = pc.unique(source_keys)
    order = pc.array_sort_indices(keys).to_numpy()
    rank_of_key = np.empty(len(order), np.int64)
    rank_of_key[order] = np.arange(len(order))
    ranks = rank_of_key[pc.index_in(source_keys, keys).to_numpy()]
    rows, numbers = np.unique(groups, return_inverse=True)
    smallest = np.full(len(rows), len(order))
    np.minimum.at(smallest, numbers, ranks)
    smallest_keys = keys.take(order[smallest]).to_pylist()
    return [_digest(key).hex() for key in smallest_keys], numbers


def deal_rows(
    names: list[str], num_sentences: Integers, groups: Integers, rows: Integers, config: SplitConfig
) -> Integers:
    """(N,) side of each pair: TRAIN, VALID or TEST; with `train_lines` also SHARING or SPARE.

    names and num_sentences (G,) as for `deal_sides`; groups (N,): the number of each pair's group; rows (N,):
    its line in the corpus. Raises ValueError like `deal_sides`.
    """
    if config.train_lines is None:
        return deal_sides(names, num_sentences, config)[groups]
    is_first = rows < config.train_lines
    has_first = np.zeros(len(names), bool)
    has_first[groups[is_first]] = True
    sides = deal_sides(names, num_sentences, config, has_first)[groups]
    is_left = (sides == TRAIN) & ~is_first
    return np.where(is_left, np.where(has_first[groups], SHARING, SPARE), sides)


def deal_sides(
    names: list[str], num_sentences: Integers, config: SplitConfig, is_train: Booleans | None = None
) -> Integers:
    """(G,) TRAIN, VALID or TEST for each group; num_sentences (G,) counts its different source sentences.

    is_train (G,) names groups that go to training whatever their hash. Raises ValueError where valid and test
    together would take more than half of the sentences, or more than is_train leaves.
    """
    is_free = np.ones(len(names), bool) if is_train is None else ~is_train
    _check_sizes(num_sentences, is_free, config)
    hashes = [int.from_bytes(_digest(f"{config.seed} {name}"), "big") for name in names]
    order = np.argsort(np.array(hashes, np.uint64), kind="stable")
    order = order[is_free[order]]
    sides = np.full(len(names), TRAIN, np.int64)
    for side, size in ((TEST, config.test_sentences), (VALID, config.valid_sentences)):
        fitting = order[(sides[order] == TRAIN) & (num_sentences[order] <= max(1, size // 10))]
        reached = np.cumsum(num_sentences[fitting])
        if not len(reached) or reached[-1] < size:
            raise ValueError(
                f"split.valid_sentences={config.valid_sentences} and split.test_sentences="
                f"{config.test_sentences}: too many of the corpus's {num_sentences[is_free].sum()} different "
                "source sentences hang together through shared translations (largest group: "
                f"{num_sentences[is_free].max()}); {_advice(config)}"
            )
        sides[fitting[: np.searchsorted(reached, size) + 1]] = side
    return sides


def _check_sizes(num_sentences: Integers, is_free: Booleans, config: SplitConfig) -> None:
    asked = config.valid_sentences + config.test_sentences
    total = int(num_sentences[is_free].sum())
    found = (
        f"split.valid_sentences={config.valid_sentences} and split.test_sentences="
        f"{config.test_sentences} are {asked} together, but"
    )
    if config.train_lines is None and 2 * asked > total:
        raise ValueError(
            f"{found} may be at most half of the corpus's {total} different source sentences; "
            f"{_advice(config)}"
        )
    if asked > total:
        raise ValueError(
            f"{found} only {total} different source sentences stand behind the first "
            f"split.train_lines={config.train_lines} lines and share nothing with them; {_advice(config)}"
        )


def _advice(config: SplitConfig) -> str:
    more = "use a larger corpus" if config.train_lines is None else "raise cleaning.max_pairs"
    return f"lower split.valid_sentences and split.test_sentences in params.yaml, or {more}"


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
