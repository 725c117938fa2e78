"""Raw pairs to the three splits: read, clean, reject, group, deal out, write.

The text is streamed once; what is kept stands in memory once, as Arrow columns. The same input gives the same
bytes with the same version of Arrow.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from passerelle.config import CleaningConfig, LanguagesConfig, SplitConfig
from passerelle.corpus.clean import clean_text
from passerelle.corpus.read import EMPTY_LINE, LINE_TOO_LONG, MALFORMED_LINE, Pair, Rejected, read_pairs
from passerelle.corpus.screen import PAIR_REASONS, fault_of_pair
from passerelle.corpus.split import (
    SHARING,
    SPARE,
    TEST,
    TRAIN,
    VALID,
    Integers,
    comparison_keys,
    connected_groups,
    deal_rows,
    group_names,
)
from passerelle.files import whole_folder

DUPLICATE_PAIR = "duplicate pair"
LEFT_OUT = {SHARING: "shares a sentence with train", SPARE: "behind train_lines, not needed"}
"""Reasons of the split, where `split.train_lines` is given."""
REASONS = (EMPTY_LINE, MALFORMED_LINE, LINE_TOO_LONG, *PAIR_REASONS, DUPLICATE_PAIR, *LEFT_OUT.values())

_BATCH_ROWS = 65_536
_BATCH_CHARACTERS = 16_000_000
"""Written together at most, about: rows may be as long as `cleaning.max_line_bytes`."""
_INTEGER: Any = pa.int64()
_STRING: Any = pa.string()
_PAIR_SCHEMA = pa.schema([("row", _INTEGER), ("source", _STRING), ("target", _STRING)])
_REJECTED_SCHEMA = pa.schema([("row", _INTEGER), ("reason", _STRING), ("text", _STRING)])


def prepare_corpus(
    raw: Path, folder: Path, languages: LanguagesConfig, cleaning: CleaningConfig, split: SplitConfig
) -> dict[str, Any]:
    """Write train, valid, test and rejected.parquet into `folder`, all or none; return the counts.

    Columns: train (source, target, group, row); valid and test (source, references, group, row), one row for
    each source sentence with all its translations; rejected (row, reason, text). `group` is the name of the
    group of pairs that share sentences, `row` the 0-based line of `raw` (the first, where there are several).
    Rejected lines stand in the order of `raw`, those that the split leaves out behind the others (as cleaned
    text). In the counts, kept + rejected = read. Raises ValueError where `raw` is no usable corpus.
    """
    with (
        whole_folder(folder) as temporary,
        pq.ParquetWriter(temporary / "rejected.parquet", _REJECTED_SCHEMA, compression="zstd") as writer,
    ):
        pairs, rejected = _screened(_cleaned(raw, languages, cleaning), writer)
        if not len(pairs):
            raise ValueError(
                f"{raw}: none of its lines is kept ({_most(rejected)}); see section cleaning in params.yaml"
            )
        source_ids = _ids(pairs["source"])
        groups, names, sides = _dealt(pairs, source_ids, split)
        pairs = pairs.append_column("group", pa.array(names).take(groups))
        for side, reason in LEFT_OUT.items():
            rejected[reason] = _leave_out(pairs.filter(sides == side), reason, writer)
        kept = np.isin(sides, (TRAIN, VALID, TEST))
        num_rows = np.bincount(groups[kept])
        counts: dict[str, Any] = {
            "read": int(kept.sum()) + rejected.total(),
            "kept": int(kept.sum()),
            "rejected": {"total": rejected.total(), **{reason: rejected[reason] for reason in REASONS}},
            "groups": int(np.count_nonzero(num_rows)),
            "largest_group": int(num_rows.max()),
        }
        for name, side in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
            rows = np.flatnonzero(sides == side)
            table = pairs.take(rows)
            columns = ["source", "target", "group", "row"]
            if side != TRAIN:
                table = _with_references(table, source_ids[rows])
                columns[1] = "references"
            path = temporary / f"{name}.parquet"
            pq.write_table(table.select(columns), path, _BATCH_ROWS, compression="zstd")
            num_sentences = len(np.unique(source_ids[rows]))
            counts[name] = {"rows": len(table), "sentences": num_sentences, "references": len(rows)}
    return counts


def _cleaned(raw: Path, languages: LanguagesConfig, cleaning: CleaningConfig) -> Iterator[Pair | Rejected]:
    """Each line of `raw` as a cleaned Pair that nothing speaks against, or as Rejected."""
    seen: set[bytes] = set()  # hashes, so a pair takes the same room however long it is
    for item in read_pairs(raw, max_line_bytes=cleaning.max_line_bytes, max_pairs=cleaning.max_pairs):
        if isinstance(item, Rejected):
            yield item
            continue
        source = clean_text(_cased(item.source, cleaning), languages.source)
        target = clean_text(_cased(item.target, cleaning), languages.target)
        reason = fault_of_pair(source, target, cleaning)
        if reason is None:
            digest = hashlib.blake2b(f"{source}\t{target}".encode(), digest_size=16).digest()
            if digest in seen:
                reason = DUPLICATE_PAIR
            seen.add(digest)
        if reason is None:
            yield Pair(item.row, source, target)
        else:
            yield Rejected(item.row, reason, f"{item.source}\t{item.target}")


def _cased(text: str, cleaning: CleaningConfig) -> str:
    return text.lower() if cleaning.lowercase else text


def _screened(items: Iterator[Pair | Rejected], writer: Any) -> tuple[Any, Counter[str]]:
    """The pairs as one Arrow table, and how many lines each reason rejected; those are written on the way."""
    batches: list[Any] = []
    pairs: list[Pair] = []
    rejected: list[Rejected] = []
    reasons: Counter[str] = Counter()
    num_characters = 0
    for item in items:
        if isinstance(item, Pair):
            pairs.append(item)
            if len(pairs) == _BATCH_ROWS:
                batches.append(_batch(pairs, _PAIR_SCHEMA))
                pairs.clear()
        else:
            reasons[item.reason] += 1
            rejected.append(item)
            num_characters += len(item.text)
            if len(rejected) == _BATCH_ROWS or num_characters > _BATCH_CHARACTERS:
                writer.write_batch(_batch(rejected, _REJECTED_SCHEMA))
                rejected.clear()
                num_characters = 0
    writer.write_batch(_batch(rejected, _REJECTED_SCHEMA))
    batches.append(_batch(pairs, _PAIR_SCHEMA))
    return pa.Table.from_batches(batches).combine_chunks(), reasons


def _leave_out(pairs: Any, reason: str, writer: Any) -> int:
    """Write pairs as rejected; returns how many."""
    for part in pairs.to_batches(_BATCH_ROWS):
        columns = (part[name].to_pylist() for name in ("row", "source", "target"))
        rows = [
            Rejected(row, reason, f"{source}\t{target}") for row, source, target in zip(*columns, strict=True)
        ]
        writer.write_batch(_batch(rows, _REJECTED_SCHEMA))
    return len(pairs)


def _batch(items: list[Pair] | list[Rejected], schema: Any) -> Any:
    columns = list(zip(*items, strict=True)) or [(), (), ()]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def _dealt(pairs: Any, source_ids: Integers, split: SplitConfig) -> tuple[Integers, list[str], Integers]:
    """(N,) group of each row, the names of the G groups, and (N,) the side of each row."""
    source_keys = comparison_keys(pairs["source"])
    target_keys = comparison_keys(pairs["target"])
    names, groups = group_names(connected_groups(_ids(source_keys), _ids(target_keys)), source_keys)
    _, first_rows = np.unique(source_ids, return_index=True)
    num_sentences = np.bincount(groups[first_rows], minlength=len(names))
    rows = pairs["row"].to_numpy()
    return groups, names, deal_rows(names, num_sentences, groups, rows, split)


def _with_references(table: Any, source_ids: Integers) -> Any:
    """One row for each different source, in the corpus's order, with the list of its translations."""
    _, first_rows, counts = np.unique(source_ids, return_index=True, return_counts=True)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    targets = table["target"].combine_chunks().take(np.argsort(source_ids, kind="stable"))
    references = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), targets)
    return table.take(first_rows).append_column("references", references)


def _ids(strings: Any) -> Integers:
    """(N,) strings -> (N,) numbers, the same for the same string, rising with its first appearance."""
    array = strings.combine_chunks() if isinstance(strings, pa.ChunkedArray) else strings
    ids: Integers = array.dictionary_encode().indices.to_numpy().astype(np.int64)
    return ids


def _most(rejected: Counter[str]) -> str:
    return ", ".join(f"{reason}: {count}" for reason, count in rejected.most_common(3))
