"""What a test set has in common with the training set: the same sentences, and nearly the same.

Sentences are compared as `corpus.split` does, by their letters and digits alone, case-folded. Two are near where
rapidfuzz's normalised Indel similarity of these is at least 90 %: of the letters of both together at most a tenth
must be inserted or deleted to make one the other. The same sentence is near, too.

Beside the split's own test and validation sentences stands what the same pairs would share had their rows been
dealt out at random.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from passerelle.corpus.split import comparison_keys
from passerelle.parquet import read_parquet

Booleans = NDArray[np.bool_]

NEAR_PERCENT = 90
SEED = 0
"""Of the random split."""
BLOCK = 128
"""Sentences of like length that are compared at once."""
KINDS = ("shared_source", "shared_target", "shared", "near_source", "near_target", "near")
"""The third and the last: on either side."""
SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Texts:
    """N source sentences, each with one or more translations."""

    sources: Sequence[str]
    targets: Sequence[Sequence[str]]

    def pairs(self) -> "Texts":
        """One row for each translation."""
        lengths = [len(texts) for texts in self.targets]
        sources = np.repeat(np.array(self.sources, dtype=object), lengths).tolist()
        return Texts(sources, [(text,) for text in chain.from_iterable(self.targets)])

    def take(self, rows: NDArray[np.int64]) -> "Texts":
        """The rows of these numbers."""
        return Texts([self.sources[row] for row in rows], [self.targets[row] for row in rows])


def leak_report(splits: Mapping[str, Texts]) -> dict[str, float]:
    """Of `test`, `valid` and `random` (rows at random, as many as the test has pairs) what training shares.

    `<name>_sentences`, and for each of KINDS `<name>_<kind>`, a number of sentences, and `<name>_<kind>_share`,
    the part of them all. splits: as from `read_splits`.
    """
    keys = {split: keys_of(texts) for split, texts in splits.items()}
    rows = random_split(keys)
    return {
        "near_percent": NEAR_PERCENT,
        **_leaks("test", keys["test"], keys["train"]),
        **_leaks("valid", keys["valid"], keys["train"]),
        **_leaks("random", rows["test"], rows["train"]),
    }


def read_splits(prepared: Path) -> dict[str, Texts]:
    """The sentences of each of SPLITS, as cleaned text; prepared: the output of stage `prepare`.

    Raises ValueError where a file of it is missing or no Parquet file.
    """
    splits = {}
    for split in SPLITS:
        column = "target" if split == "train" else "references"
        file = prepared / f"{split}.parquet"
        table: dict[str, Any] = read_parquet(file, ["source", column]).to_pydict()
        targets = table[column] if split != "train" else [(text,) for text in table[column]]
        splits[split] = Texts(table["source"], targets)
    return splits


def keys_of(texts: Texts) -> Texts:
    """Of each sentence the letters and digits that it is compared by."""
    lengths = [len(group) for group in texts.targets]
    targets = iter(_keys(chain.from_iterable(texts.targets)))
    return Texts(_keys(texts.sources), [[next(targets) for _ in range(length)] for length in lengths])


def all_pairs(splits: Mapping[str, Texts]) -> Texts:
    """The pairs of all splits, one after the other."""
    sides = [texts.pairs() for texts in splits.values()]
    return Texts(
        list(chain.from_iterable(side.sources for side in sides)),
        list(chain.from_iterable(side.targets for side in sides)),
    )


def random_split(splits: Mapping[str, Texts]) -> dict[str, Texts]:
    """All pairs of the splits, their rows dealt out anew at random, into sides of the same numbers of pairs."""
    rows = all_pairs(splits)
    order = np.random.default_rng(SEED).permutation(len(rows.sources))
    ends = np.cumsum([sum(map(len, texts.targets)) for texts in splits.values()])
    return {split: rows.take(part) for split, part in zip(splits, np.split(order, ends[:-1]), strict=True)}


def _keys(sentences: Iterable[str]) -> list[str]:
    keys: list[str] = comparison_keys(pa.array(sentences, pa.string())).to_pylist()
    return keys


def _leaks(name: str, asked: Texts, train: Texts) -> dict[str, float]:
    known_sources, known_targets = set(train.sources), set(chain.from_iterable(train.targets))
    owner = np.repeat(np.arange(len(asked.sources)), [len(texts) for texts in asked.targets])
    targets = list(chain.from_iterable(asked.targets))
    found = {
        "shared_source": np.array([text in known_sources for text in asked.sources], bool),
        "shared_target": _any(np.array([text in known_targets for text in targets], bool), owner),
        "near_source": are_near(asked.sources, known_sources),
        "near_target": _any(are_near(targets, known_targets), owner),
    }
    found["shared"] = found["shared_source"] | found["shared_target"]
    found["near"] = found["near_source"] | found["near_target"]
    total = len(asked.sources)
    report: dict[str, float] = {f"{name}_sentences": total}
    for kind in KINDS:
        count = int(found[kind].sum())
        report |= {f"{name}_{kind}": count, f"{name}_{kind}_share": round(count / max(total, 1), 4)}
    return report


def _any(is_found: Booleans, owner: NDArray[np.int64]) -> Booleans:
    """(M,) findings of M texts, and (M,) the sentence that each belongs to -> (N,) whether it has a finding."""
    result = np.zeros(int(owner.max(initial=-1)) + 1, bool)
    result[owner[is_found]] = True
    return result


def are_near(asked: Sequence[str], known: Iterable[str]) -> Booleans:
    """(N,) of each text whether one of `known` is at least NEAR_PERCENT alike.

    Only texts of like length can be: of lengths S <= L at most 2 S of the S + L letters are in common.
    """
    shorter, longer = NEAR_PERCENT, 200 - NEAR_PERCENT
    choices = sorted(known, key=len)
    lengths = np.array([len(text) for text in choices], np.int64)
    order = sorted(range(len(asked)), key=lambda index: len(asked[index]))
    result = np.zeros(len(asked), bool)
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        low, high = len(asked[block[0]]), len(asked[block[-1]])
        first = np.searchsorted(lengths * longer, low * shorter)
        last = np.searchsorted(lengths * shorter, high * longer, side="right")
        scores = process.cdist(
            choices[first:last],  # the longer list first, which takes half the time
            [asked[index] for index in block],
            scorer=fuzz.ratio,
            score_cutoff=NEAR_PERCENT,
            dtype=np.uint8,
            workers=-1,
        )
        result[block] = scores.any(axis=0)
    return result
