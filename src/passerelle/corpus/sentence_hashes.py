"""Sentences as 64-bit hashes of their letters and digits, so that a model can carry what it was trained on.

Two sentences that `split` holds for the same have the same hash: 250,000 take 2 MB, and two different ones of
them share a hash with a chance of one in 10^9.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from passerelle.corpus.split import comparison_keys
from passerelle.parquet import read_parquet

Hashes = NDArray[np.uint64]


def sentence_hashes(sentences: Iterable[str]) -> Hashes:
    """(N,) the hash of each sentence."""
    keys = comparison_keys(pa.array(sentences, pa.string())).to_pylist()
    digests = (hashlib.blake2b(key.encode(), digest_size=8).digest() for key in keys)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def hashes_of_pairs(parquet: Path) -> dict[str, Hashes]:
    """Of the `source` and `target` sentences of a file of stage `prepare` the different hashes, sorted."""
    columns: dict[str, Any] = read_parquet(parquet, ["source", "target"]).to_pydict()
    return {name: np.unique(sentence_hashes(sentences)) for name, sentences in columns.items()}
