"""Opening Parquet files, and checking that nothing in an Arrow schema can run code; no other file opens Parquet.

Arrow extension types are refused: Ray registers one whose values are pickles, so that merely reading such a column
where Ray is loaded would run what the file says.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

EXTENSION = b"ARROW:extension:name"
"""Marks, in a field's metadata, an extension type that no library here knows."""


def open_parquet(parquet: Path) -> pq.ParquetFile:
    """A file that stage `prepare` wrote; ValueError where it is missing, no Parquet file, or of other types."""
    if not parquet.is_file():
        raise ValueError(f"{parquet}: no such file; run stage prepare first")
    try:
        file = pq.ParquetFile(parquet)
        schema = file.schema_arrow
    except ValueError as error:  # Arrow's own, and those of extension types
        raise ValueError(f"{parquet}: not a Parquet file ({error}); run stage prepare again") from None
    if fault := fault_of(schema):
        file.close()
        raise ValueError(f"{parquet}: {fault}; run stage prepare again")
    return file


def read_parquet(parquet: Path, columns: Sequence[str]) -> Any:
    """These columns of a file that stage `prepare` wrote, as an Arrow table; ValueError where one is missing."""
    with open_parquet(parquet) as file:
        if missing := set(columns) - set(file.schema_arrow.names):
            found = ", ".join(file.schema_arrow.names)
            raise ValueError(f"{parquet}: lacks {sorted(missing)}, has {found}; run stage prepare again")
        return file.read(list(columns))


def fault_of(schema: Any) -> str:
    """Which column is neither text nor numbers nor a list of them; empty where there is none."""
    for field in schema:
        if not _is_plain(field):
            return f"column {field.name!r} is of type {field.type}, but only text, numbers and lists are read"
    return ""


def _is_plain(field: Any) -> bool:
    if EXTENSION in (field.metadata or {}):
        return False
    kind, types = field.type, pa.types
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        return _is_plain(kind.value_field)
    is_plain = types.is_string(kind) or types.is_integer(kind) or types.is_floating(kind)
    return bool(is_plain or types.is_null(kind))  # a column without values may have no type
