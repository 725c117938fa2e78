"""Stage prepare as a whole, on small texts: files, columns, counts, references."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from passerelle.config import CleaningConfig, LanguagesConfig, SplitConfig
from passerelle.corpus.prepare import REASONS, prepare_corpus

FILLERS = [f"Number {i}.\tNombre {i}." for i in range(40)]


def prepare(folder: Path, lines: list[str], valid: int = 4, test: int = 4, **cleaning: Any) -> dict[str, Any]:
    (folder / "pairs.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return prepare_corpus(
        folder / "pairs.txt",
        folder / "prepared",
        LanguagesConfig(),
        CleaningConfig(**cleaning),
        SplitConfig(valid_sentences=valid, test_sentences=test),
    )


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return pq.read_table(folder / "prepared" / f"{name}.parquet").to_pylist()


def test_every_line_is_kept_or_rejected_with_its_reason(tmp_path: Path) -> None:
    faulty = [
        "",
        "lonely",
        "x" * 300,
        "\u200b\tVide.",
        "Empty.\t\u00a0",
        "word " * 12 + "\t" + "mot " * 12,
        "word " * 11 + "\tmot",
        "The same few words\tThe same few words",
        "Number 0.\u200b\tNombre\u00a00.",
    ]
    lines = [FILLERS[0], *faulty, *FILLERS[1:]]
    counts = prepare(tmp_path, lines, max_words=11, max_line_bytes=299)
    assert counts["read"] == 49
    assert counts["kept"] == 40
    assert counts["rejected"] == {"total": 9, **dict.fromkeys(REASONS, 1)}
    rejected = rows(tmp_path, "rejected")
    assert [row["row"] for row in rejected] == list(range(1, 10))
    assert [row["reason"] for row in rejected] == [
        "empty line",
        "malformed line",
        "line too long",
        "empty source",
        "empty target",
        "too long",
        "length ratio",
        "untranslated",
        "duplicate pair",
    ]
    assert [row["text"] for row in rejected] == ["", "lonely", "x" * 299, *faulty[3:]]


def test_the_sides_hold_each_kept_pair_once_and_the_counts_say_so(tmp_path: Path) -> None:
    counts = prepare(tmp_path, FILLERS)
    sides = {name: rows(tmp_path, name) for name in ("train", "valid", "test")}
    kept = [(row["source"], row["target"], row["row"]) for row in sides["train"]]
    kept += [
        (row["source"], row["references"][0], row["row"]) for name in ("valid", "test") for row in sides[name]
    ]
    assert sorted(kept, key=lambda row: row[2]) == [(*line.split("\t"), i) for i, line in enumerate(FILLERS)]
    for name in sides:
        num = len(sides[name])
        assert counts[name] == {"rows": num, "sentences": num, "references": num}
    assert (counts["groups"], counts["largest_group"]) == (40, 1)
    assert (len(sides["valid"]), len(sides["test"])) == (4, 4)


def test_a_source_sentence_of_the_test_stands_once_with_all_its_references(tmp_path: Path) -> None:
    lines = [line for i in range(40) for line in (f"Number {i}.\tNombre {i} ?", f"Other {i}\tAutre {i}")]
    lines += [line for i in range(40) for line in (f"number {i}!\tNombre {i} !", f"Number {i}.\tLe {i}.")]
    counts = prepare(tmp_path, lines, valid=20, test=20)
    assert counts["test"]["references"] > counts["test"]["sentences"] == counts["test"]["rows"]
    test = rows(tmp_path, "test")
    assert [row["row"] for row in test] == sorted(row["row"] for row in test)
    several = [row for row in test if row["source"].startswith("Number")]
    assert several
    for row in several:
        number = row["source"].split()[1][:-1]
        assert row["references"] == [f"Nombre {number} ?", f"Le {number}."]
        assert row["row"] == lines.index(f"{row['source']}\t{row['references'][0]}")
        variant = next(other for other in test if other["source"] == f"number {number}!")
        assert variant["references"] == [f"Nombre {number} !"]
        assert variant["group"] == row["group"]


def test_both_sides_are_cleaned_by_the_rules_of_their_language(tmp_path: Path) -> None:
    prepare(tmp_path, ["The bridge ?\tC’est le pont\u202f?", *FILLERS], valid=1, test=1)
    cleaned = rows(tmp_path, "train")[0]
    assert (cleaned["source"], cleaned["target"]) == ("The bridge?", "C'est le pont ?")


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for run in ("first", "second"):
        (tmp_path / run).mkdir()
        counts = prepare(tmp_path / run, ["", *FILLERS])
        files = sorted((tmp_path / run / "prepared").iterdir())
        contents.append([json.dumps(counts)] + [(file.name, file.read_bytes()) for file in files])
    assert contents[0] == contents[1]
    assert [name for name, _ in contents[0][1:]] == [
        "rejected.parquet",
        "test.parquet",
        "train.parquet",
        "valid.parquet",
    ]


def test_a_corpus_of_which_nothing_is_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"none of its lines is kept \(too long: 2, empty target: 1\); see section"
    ):
        prepare(tmp_path, ["a b c\td e f", "a\t ", "d e f\tg"], max_words=2)


def test_a_refused_corpus_leaves_what_was_there(tmp_path: Path) -> None:
    prepare(tmp_path, FILLERS)
    before = [rows(tmp_path, name) for name in ("train", "rejected")]
    with pytest.raises(
        ValueError, match=r"split\.valid_sentences=4 and .* at most half of the corpus's 5 different"
    ):
        prepare(tmp_path, ["", *FILLERS[:5]])
    assert [rows(tmp_path, name) for name in ("train", "rejected")] == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pairs.txt", "prepared"]


def test_max_pairs_reads_the_beginning_only(tmp_path: Path) -> None:
    assert prepare(tmp_path, FILLERS, valid=2, test=2, max_pairs=9)["read"] == 9
