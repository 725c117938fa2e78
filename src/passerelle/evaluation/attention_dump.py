"""The attention of many sentences as one Arrow file, written and read a batch at a time.

A row holds one kind of attention of one sentence: its tokens, and the weights (L, H, Q, K) laid flat, with their
shape. Any Arrow library reads it: `weights[i].reshape(shape[i])` is what `attention_map` gives. What the four
dimensions count stands in the schema's metadata, by kind.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from passerelle.evaluation.attention_maps import AXES, AttentionMap
from passerelle.files import whole_file
from passerelle.parquet import fault_of

FORMAT = "passerelle attention 1"
SENTENCES_AT_ONCE = 64
"""In one record batch, with all kinds of their attention."""
TOKENS = ("source_tokens", "target_tokens", "predicted_tokens")
FIELDS: list[Any] = [
    ("sentence", pa.int32()),
    ("kind", pa.string()),
    ("source", pa.string()),
    ("translation", pa.string()),
    *((name, pa.list_(pa.string())) for name in TOKENS),
    ("shape", pa.list_(pa.int32(), 4)),
    ("weights", pa.list_(pa.float32())),
]
SCHEMA = pa.schema(FIELDS, metadata={"format": FORMAT, "axes": json.dumps(AXES)})

Numbered = tuple[int, AttentionMap]
"""The number of a sentence in its file, from 0, and its attention."""


def written(maps: Iterable[Numbered], path: Path) -> Iterator[Numbered]:
    """The same maps, each written as it passes; once all have, the file at `path` is there, whole or not at all."""
    rest = iter(maps)
    with (
        whole_file(path) as temporary,
        pa.OSFile(str(temporary), "wb") as file,
        pa.ipc.new_file(file, SCHEMA) as writer,
    ):
        while part := list(islice(rest, SENTENCES_AT_ONCE)):
            writer.write_batch(_record_batch(part))
            yield from part


def read_attention(path: Path) -> Iterator[Numbered]:
    """What was written, in order; the file is mapped, so that a batch of it is in memory at a time.

    Raises ValueError where the file is missing or is not such a dump.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no such file; evaluation.attention_dump in params.yaml asks for it")
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
            if reader.schema.metadata is None or reader.schema.metadata.get(b"format") != FORMAT.encode():
                raise ValueError(f"{path}: not a dump of attention that this version reads; evaluate again")
            if fault := fault_of(reader.schema):
                raise ValueError(f"{path}: {fault}; evaluate again")
            for index in range(reader.num_record_batches):
                yield from _numbered(reader.get_batch(index))
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: not an Arrow file ({error}); evaluate again") from None


def _record_batch(part: list[Numbered]) -> Any:
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for number, attention in part:
        for kind, weights in attention.weights.items():
            columns["sentence"].append(number)
            columns["kind"].append(kind)
            columns["shape"].append(weights.shape)
            columns["weights"].append(weights.ravel())
            for name in ("source", "translation", *TOKENS):
                columns[name].append(getattr(attention, name))
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


def _numbered(batch: Any) -> Iterator[Numbered]:
    """The maps of one record batch: the rows of a sentence stand together."""
    columns = {name: batch.column(name) for name in SCHEMA.names}
    texts = {name: columns[name].to_pylist() for name in SCHEMA.names if name != "weights"}
    first = 0
    while first < batch.num_rows:
        weights = {}
        row = first
        while row < batch.num_rows and texts["sentence"][row] == texts["sentence"][first]:
            flat = columns["weights"][row].values.to_numpy()
            weights[texts["kind"][row]] = np.array(flat).reshape(texts["shape"][row])
            row += 1
        source_tokens, target_tokens, predicted_tokens = (tuple(texts[name][first]) for name in TOKENS)
        yield (
            texts["sentence"][first],
            AttentionMap(
                source=texts["source"][first],
                translation=texts["translation"][first],
                source_tokens=source_tokens,
                target_tokens=target_tokens,
                predicted_tokens=predicted_tokens,
                weights=weights,
            ),
        )
        first = row
