"""`manifest.json`: what a folder of shards holds, in their order, with sizes and hashes."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from passerelle.config import NonNegativeInt, PositiveInt, Section

SCHEMA_VERSION = 1
MANIFEST_NAME = "manifest.json"
AGAIN = "run stage shards again"


Hash = Annotated[str, Field(pattern=r"^[0-9a-z]{1,64}$")]


class Shard(Section):
    """What the manifest says of a shard."""

    file: Annotated[str, Field(pattern=r"^shard-\d{5,}\.arrow$")]
    rows: PositiveInt
    source_tokens: NonNegativeInt
    target_tokens: NonNegativeInt
    bytes: PositiveInt
    sha256: Hash


class Manifest(Section):
    """What `manifest.json` says."""

    schema_version: Literal[1]
    content_sha256: Hash
    tokenizer_sha256: Hash
    vocab_size: PositiveInt
    max_tokens: PositiveInt
    rows: PositiveInt
    source_tokens: NonNegativeInt
    target_tokens: NonNegativeInt
    bytes: PositiveInt
    source_truncated: NonNegativeInt
    target_truncated: NonNegativeInt
    source_lengths: dict[str, PositiveInt]
    target_lengths: dict[str, PositiveInt]
    shards: Annotated[list[Shard], Field(min_length=1)]


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder of shards; ValueError where it is missing, damaged or of another version."""
    path = folder / MANIFEST_NAME
    if not path.is_file():
        raise ValueError(f"{path}: no such file; run stage shards first")
    try:
        manifest = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not valid JSON ({error}); {AGAIN}") from None
    version = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if version != SCHEMA_VERSION:
        raise ValueError(f"{path}: schema_version is {version}, this code reads {SCHEMA_VERSION}; {AGAIN}")
    try:
        Manifest.model_validate(manifest)
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(str(part)[:60] for part in fault["loc"])
        raise ValueError(f"{path}: {key!r}: {fault['msg'].lower()}; {AGAIN}") from None
    return dict(manifest)


def content_hash(shard_hashes: Iterable[str]) -> str:
    """One hash for the shards in their order; it covers ids, schema version and tokenizer."""
    return hashlib.sha256("".join(f"{one}\n" for one in shard_hashes).encode()).hexdigest()


def shard_metadata(tokenizer_sha256: str) -> dict[str, str]:
    """What every shard says of itself in its schema."""
    return {"schema_version": str(SCHEMA_VERSION), "tokenizer_sha256": tokenizer_sha256}
