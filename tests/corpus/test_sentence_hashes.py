"""Hashes of sentences: alike where the split holds the sentences for one."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from passerelle.corpus.sentence_hashes import hashes_of_pairs, sentence_hashes


def test_sentences_that_differ_by_case_and_punctuation_share_a_hash() -> None:
    first, second, third, accented = sentence_hashes(
        ["Il est là.", "il est LÀ !", "Il est ici.", "Il est la."]
    )
    assert first == second
    assert len({first, third, accented}) == 3


def test_the_hash_is_the_same_everywhere() -> None:
    # echo -n goon | b2sum -l 64, read as a little-endian number
    assert sentence_hashes(["Go on!"]).tolist() == [
        int.from_bytes(bytes.fromhex("6a057a1ef111c824"), "little")
    ]


def test_a_file_gives_the_different_hashes_of_each_side(tmp_path: Path) -> None:
    table = pa.table({"source": ["Go on!", "Go on.", "Hi."], "target": ["Continue !", "Poursuis.", "Salut."]})
    pq.write_table(table.append_column("row", pa.array([1, 2, 3])), tmp_path / "train.parquet")
    hashes = hashes_of_pairs(tmp_path / "train.parquet")
    assert hashes.keys() == {"source", "target"}
    assert hashes["source"].tolist() == sorted(set(sentence_hashes(["Go on!", "Hi."]).tolist()))
    assert len(hashes["target"]) == 3
    assert hashes["target"].dtype == np.uint64
