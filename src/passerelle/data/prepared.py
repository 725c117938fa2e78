"""Reading the sentence pairs that stage `prepare` wrote, a batch at a time, or a sample of their sentences."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from passerelle.parquet import open_parquet

BATCH_ROWS = 16_384
SAMPLE_SEED = 0


def num_pairs(parquet: Path) -> int:
    """Number of sentence pairs in the file, read from its footer."""
    with _open(parquet) as file:
        count: int = file.metadata.num_rows
        return count


def pair_batches(parquet: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Source and target texts, in the file's order, up to 16,384 pairs at a time.

    A file with `references` (valid, test) gives the first reference as target. A missing file or column,
    a missing text and a pair without reference are ValueErrors that name the file.
    """
    with _open(parquet) as file:
        target_name = "target" if "target" in file.schema_arrow.names else "references"
        batch: Any
        for batch in file.iter_batches(BATCH_ROWS, columns=["source", target_name]):
            source, target = batch.column("source").to_pylist(), batch.column(target_name).to_pylist()
            if target_name == "references":
                target = [references[0] if references else None for references in target]
            for name, texts in (("source", source), (target_name, target)):
                if None in texts:
                    raise ValueError(
                        f"{parquet}: {texts.count(None)} rows have no {name}; run stage prepare again"
                    )
            yield source, target


def sampled_sentences(parquet: Path, limit: int) -> Iterator[tuple[str, str]]:
    """At most `limit` sentences of both columns, from the whole file, each behind `source` or `target`."""
    chosen = _sample(2 * num_pairs(parquet), limit)
    first = 0
    for source, target in pair_batches(parquet):
        sides = [("source", text) for text in source] + [("target", text) for text in target]
        start, stop = np.searchsorted(chosen, [first, first + len(sides)])
        for position in (chosen[start:stop] - first).tolist():
            yield sides[position]
        first += len(sides)


def _sample(total: int, limit: int) -> NDArray[np.int64]:
    """Rising positions of at most `limit` of `total` sentences: one at random from each of `limit` parts."""
    if total <= limit:
        return np.arange(total)
    random = np.random.default_rng(SAMPLE_SEED).random(limit)
    positions = (np.arange(limit) + random) * (total / limit)
    return np.unique(np.minimum(positions.astype(np.int64), total - 1))


def _open(parquet: Path) -> pq.ParquetFile:
    file = open_parquet(parquet)
    names = set(file.schema_arrow.names)
    if "source" not in names or not names & {"target", "references"}:
        file.close()
        raise ValueError(
            f"{parquet}: expected the columns source and target (or references), found "
            f"{', '.join(file.schema_arrow.names)}; run stage prepare again"
        )
    return file
