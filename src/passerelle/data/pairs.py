"""Reading a folder of shards: sentence pairs as token ids, memory-mapped.

A folder holds Arrow IPC files of one uncompressed record batch each, with the columns `source` and
`target` (lists of uint16, or of int32 for vocabularies over 65,536), and `manifest.json`, which names
them in order with their sizes and hashes. Arrow notices a cut file but not a changed token: `open_shards`
checks what costs nothing, `verify_shards` reads everything and compares hashes.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from passerelle.data.manifest import AGAIN, MANIFEST_NAME, content_hash, read_manifest, shard_metadata
from passerelle.data.ragged import Ids, Integers, Ragged, gather
from passerelle.files import sha256_of_file
from passerelle.parquet import fault_of

IDS_16, IDS_32 = pa.list_(pa.uint16()), pa.list_(pa.int32())


@dataclass(frozen=True, eq=False)
class SentencePairs:
    """N sentence pairs as token ids, without BOS and EOS, numbered 0 to N - 1 over all shards."""

    manifest: dict[str, Any]
    """What `manifest.json` says: counts, hashes, length histograms."""
    source_shards: tuple[Ragged, ...]
    """Source sides, shard by shard."""
    target_shards: tuple[Ragged, ...]
    """Target sides, shard by shard."""

    def __len__(self) -> int:
        return int(self._ends[-1])

    @cached_property
    def source_lengths(self) -> NDArray[np.int32]:
        """Tokens of each source sentence (N)."""
        return np.concatenate([shard.lengths for shard in self.source_shards])

    @cached_property
    def target_lengths(self) -> NDArray[np.int32]:
        """Tokens of each target sentence (N)."""
        return np.concatenate([shard.lengths for shard in self.target_shards])

    @property
    def shard_rows(self) -> list[int]:
        """Pairs in each shard."""
        return [len(shard) for shard in self.source_shards]

    def shard_lengths(self, shard: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Source and target lengths of one shard's pairs, end of sentence counted, for the batch plan."""
        return self.source_shards[shard].lengths + 1, self.target_shards[shard].lengths + 1

    def source(self, index: int) -> Ids:
        """Token ids of one source sentence, read-only, not copied."""
        shards, rows = self._locate([index])
        return self.source_shards[int(shards[0])][int(rows[0])]

    def target(self, index: int) -> Ids:
        """Token ids of one target sentence, read-only, not copied."""
        shards, rows = self._locate([index])
        return self.target_shards[int(shards[0])][int(rows[0])]

    def gather(self, indices: ArrayLike) -> tuple[Ids, Integers, Ids, Integers]:
        """Source ids, source offsets, target ids, target offsets of the pairs `indices` (M), in that order.

        Ids are flat copies of the stored type; sentence i is ids[offsets[i]:offsets[i + 1]], offsets (M + 1).
        """
        shards, rows = self._locate(indices)
        source = gather(self.source_shards, shards, rows)
        target = gather(self.target_shards, shards, rows)
        return source.ids, np.asarray(source.offsets), target.ids, np.asarray(target.offsets)

    @cached_property
    def _ends(self) -> Integers:
        return np.cumsum(self.shard_rows, dtype=np.int64)

    def _locate(self, indices: ArrayLike) -> tuple[Integers, Integers]:
        """Shard and row within it of each pair."""
        wanted = np.asarray(indices, dtype=np.int64)
        if wanted.size and not 0 <= wanted.min() <= wanted.max() < len(self):
            asked = f"{wanted.min()} to {wanted.max()}"
            raise IndexError(f"pairs are numbered 0 to {len(self) - 1}, asked for {asked}")
        shards = np.searchsorted(self._ends, wanted, side="right")
        begins = np.concatenate([np.zeros(1, dtype=np.int64), self._ends[:-1]])
        return shards, wanted - begins[shards]


def open_shards(folder: Path) -> SentencePairs:
    """The sentence pairs of the folder; nothing but headers is read.

    A missing or damaged manifest, another schema version, a missing shard and one of another size, form or
    tokenizer than the manifest says are ValueErrors that name the file.
    """
    manifest = read_manifest(folder)
    shards = [_open_shard(folder / shard["file"], shard, manifest) for shard in manifest["shards"]]
    sources, targets = zip(*shards, strict=True)
    return SentencePairs(manifest, sources, targets)


def verify_shards(folder: Path) -> None:
    """Compare hash and ids of every shard with the manifest; ValueError for the first that differs."""
    manifest = read_manifest(folder)
    for shard in manifest["shards"]:
        path = folder / shard["file"]
        _check_size(path, shard["bytes"])
        found = sha256_of_file(path)
        if found != shard["sha256"]:
            raise ValueError(
                f"{path}: sha256 is {found}, but {MANIFEST_NAME} says {shard['sha256']}; "
                f"the file is damaged, {AGAIN}"
            )
        for batch in _record_batches(path)[1]:
            _verify_ids(path, batch, manifest["vocab_size"])
    found = content_hash(shard["sha256"] for shard in manifest["shards"])
    if found != manifest["content_sha256"]:
        raise ValueError(
            f"{folder / MANIFEST_NAME}: the shards' hashes give {found}, but content_sha256 is "
            f"{manifest['content_sha256']}; the file is damaged, {AGAIN}"
        )


def _open_shard(path: Path, shard: dict[str, Any], manifest: dict[str, Any]) -> tuple[Ragged, Ragged]:
    _check_size(path, shard["bytes"])
    schema, batches = _record_batches(path)
    if fault := fault_of(schema):
        raise ValueError(f"{path}: {fault}; {AGAIN}")
    columns = [(field.name, field.type) for field in schema]
    if columns not in [[("source", kind), ("target", kind)] for kind in (IDS_16, IDS_32)]:
        found = ", ".join(f"{name!r} of {kind}" for name, kind in columns)
        raise ValueError(
            f"{path}: expected source and target as lists of uint16 or int32, found {found}; {AGAIN}"
        )
    metadata = {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in (schema.metadata or {}).items()
    }
    expected = shard_metadata(manifest["tokenizer_sha256"])
    if metadata != expected:
        raise ValueError(f"{path}: made for {metadata}, but {MANIFEST_NAME} says {expected}; {AGAIN}")
    rows = [batch.num_rows for batch in batches]
    if rows != [shard["rows"]]:
        raise ValueError(
            f"{path}: record batches of {rows} rows, but {MANIFEST_NAME} says one of {shard['rows']}; {AGAIN}"
        )
    return _ragged(path, batches[0].column("source")), _ragged(path, batches[0].column("target"))


def _record_batches(path: Path) -> tuple[Any, list[Any]]:
    """The schema and the record batches of an Arrow file, memory-mapped."""
    try:
        # Closing gives the file descriptor back; the mapping lives as long as the arrays.
        with pa.memory_map(str(path)) as mapped:
            reader = pa.ipc.open_file(mapped)
            _ = reader.schema.names, str(reader.schema)  # raises UnicodeDecodeError where a name is no text
            return reader.schema, [reader.get_batch(number) for number in range(reader.num_record_batches)]
    except (ValueError, OSError, pa.ArrowException) as error:  # Arrow's own, and those of extension types
        found = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: not an Arrow file ({found}); {AGAIN}") from None


def _verify_ids(path: Path, batch: Any, vocab_size: int) -> None:
    """Raise ValueError where lists reach beyond their ids, or ids beyond the vocabulary: hashes can be re-made."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: damaged ({' '.join(str(error).split())[:200]}); {AGAIN}") from None
    for column in batch.columns:
        ids = _ragged(path, column).ids
        if len(ids) and not 0 <= ids.min() <= ids.max() < vocab_size:
            raise ValueError(
                f"{path}: has token ids {ids.min()} to {ids.max()}, but the vocabulary has {vocab_size}; {AGAIN}"
            )


def _check_size(path: Path, expected: int) -> None:
    if not path.is_file():
        raise ValueError(f"{path}: no such file, but {MANIFEST_NAME} names it; {AGAIN}")
    found = path.stat().st_size
    if found != expected:
        raise ValueError(f"{path}: {found} bytes, but {MANIFEST_NAME} says {expected}; {AGAIN}")


def _ragged(path: Path, column: Any) -> Ragged:
    """An Arrow list column as arrays over the file's own memory."""
    if column.null_count or column.values.null_count:
        raise ValueError(f"{path}: has sentences or token ids that are missing; {AGAIN}")
    return Ragged(column.values.to_numpy(), column.offsets.to_numpy())
