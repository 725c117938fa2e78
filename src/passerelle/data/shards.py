"""Writing shards: the sentence pairs of a split as token ids in Arrow files.

`passerelle.data.pairs` says what a folder of shards is, and reads it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from passerelle.config import ShardsConfig
from passerelle.data.manifest import MANIFEST_NAME, SCHEMA_VERSION, content_hash, shard_metadata
from passerelle.data.prepared import num_pairs, pair_batches
from passerelle.data.ragged import Ragged, join, offsets_of
from passerelle.data.tokenizer import Tokenizer
from passerelle.files import sha256_of_file, whole_folder, write_json

SIDES = ("source", "target")
UINT16_VOCABULARY = 1 << 16
OFFSET_BYTES = 4

Pair = tuple[Ragged, Ragged]


def write_shards(parquet: Path, folder: Path, tokenizer: Tokenizer, config: ShardsConfig) -> dict[str, Any]:
    """Encode the split and write `folder` whole or not at all; returns its manifest.

    Sentences are cut at `max_tokens`, and counted. A shard ends with the row that fills `shard_bytes`, so
    the bytes depend on the split, the tokenizer and the configuration alone. Memory: about two shards.
    """
    if not num_pairs(parquet):
        raise ValueError(f"{parquet}: no sentence pairs; see the counts of stage prepare")
    truncated: Counter[str] = Counter()
    with whole_folder(folder) as temporary:
        encoded = _encoded(parquet, tokenizer, config.max_tokens, truncated)
        lengths: dict[str, Counter[int]] = {side: Counter() for side in SIDES}
        shards = []
        for number, pair in enumerate(_regrouped(encoded, config.shard_bytes)):
            shards.append(_write_shard(temporary / f"shard-{number:05d}.arrow", pair, tokenizer.sha256))
            for side, sequences in zip(SIDES, pair, strict=True):
                values, counts = np.unique(sequences.lengths, return_counts=True)
                lengths[side].update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        manifest = _manifest(shards, tokenizer, config, truncated, lengths)
        write_json(temporary / MANIFEST_NAME, manifest)
    return manifest


def shard_metrics(manifest: dict[str, Any]) -> dict[str, float]:
    """The numbers of a manifest worth comparing between runs."""
    metrics: dict[str, float] = {"rows": manifest["rows"]}
    for side in SIDES:
        metrics[f"{side}_tokens"] = manifest[f"{side}_tokens"]
        metrics[f"{side}_tokens_mean"] = round(manifest[f"{side}_tokens"] / manifest["rows"], 4)
        metrics[f"{side}_truncated"] = manifest[f"{side}_truncated"]
    return metrics


def _encoded(parquet: Path, tokenizer: Tokenizer, max_tokens: int, truncated: Counter[str]) -> Iterator[Pair]:
    """Both sides of the split as token ids, batch by batch; `truncated` counts cut sentences of each side."""
    id_type: type[np.integer[Any]] = np.uint16 if tokenizer.vocab_size <= UINT16_VOCABULARY else np.int32
    for texts in pair_batches(parquet):
        pair = []
        for side, column in zip(SIDES, texts, strict=True):
            batch = tokenizer.encode_batch(column)
            lengths = np.fromiter(map(len, batch), dtype=np.int64, count=len(batch))
            cut = int(np.count_nonzero(lengths > max_tokens))
            if cut:
                truncated[side] += cut
                batch = [ids[:max_tokens] for ids in batch]
            offsets = offsets_of(np.minimum(lengths, max_tokens))
            ids = np.fromiter(chain.from_iterable(batch), dtype=id_type, count=int(offsets[-1]))
            pair.append(Ragged(ids, offsets))
        yield pair[0], pair[1]


def _regrouped(batches: Iterable[Pair], shard_bytes: int) -> Iterator[Pair]:
    """The same rows in groups, each ended by the row that brings it to `shard_bytes`."""
    pending: list[Pair] = []
    missing = shard_bytes
    for source, target in batches:
        id_bytes = source.ids.itemsize
        ends = (source.offsets + target.offsets) * id_bytes + 2 * OFFSET_BYTES * np.arange(len(source) + 1)
        start = 0
        while start < len(source):
            filling = int(np.searchsorted(ends, ends[start] + missing))
            stop = min(filling, len(source))
            pending.append((source.rows(start, stop), target.rows(start, stop)))
            missing -= int(ends[stop] - ends[start])
            start = stop
            if missing <= 0:
                yield _joined(pending)
                pending, missing = [], shard_bytes
    if pending:
        yield _joined(pending)


def _joined(pairs: list[Pair]) -> Pair:
    sources, targets = zip(*pairs, strict=True)
    return join(sources), join(targets)


def _write_shard(path: Path, pair: Pair, tokenizer_sha256: str) -> dict[str, Any]:
    """Write one Arrow IPC file of one record batch; returns its entry in the manifest."""
    columns = [
        pa.ListArray.from_arrays(pa.array(side.offsets, pa.int32()), pa.array(side.ids)) for side in pair
    ]
    metadata = shard_metadata(tokenizer_sha256)
    batch = pa.record_batch(columns, names=list(SIDES)).replace_schema_metadata(metadata)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    return {
        "file": path.name,
        "rows": batch.num_rows,
        **{f"{name}_tokens": len(side.ids) for name, side in zip(SIDES, pair, strict=True)},
        "bytes": path.stat().st_size,
        "sha256": sha256_of_file(path),
    }


def _manifest(
    shards: list[dict[str, Any]],
    tokenizer: Tokenizer,
    config: ShardsConfig,
    truncated: Counter[str],
    lengths: dict[str, Counter[int]],
) -> dict[str, Any]:
    totals = ("rows", "source_tokens", "target_tokens", "bytes")
    return {
        "schema_version": SCHEMA_VERSION,
        "content_sha256": content_hash(shard["sha256"] for shard in shards),
        "tokenizer_sha256": tokenizer.sha256,
        "vocab_size": tokenizer.vocab_size,
        "max_tokens": config.max_tokens,
        **{total: sum(shard[total] for shard in shards) for total in totals},
        **{f"{side}_truncated": truncated[side] for side in SIDES},
        **{f"{side}_lengths": {str(n): lengths[side][n] for n in sorted(lengths[side])} for side in SIDES},
        "shards": shards,
    }
