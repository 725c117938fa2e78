"""Stage prepare as a whole, on small texts: files, columns, counts, references."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from passerelle.config import CleaningConfig, LanguagesConfig, SplitConfig
from passerelle.corpus.prepare import LEFT_OUT, REASONS, prepare_corpus
from passerelle.corpus.split import comparison_keys

FILLERS = [f"Number {i}.\tNombre {i}." for i in range(40)]


def prepare(
    folder: Path,
    lines: list[str],
    valid: int = 4,
    test: int = 4,
    train_lines: int | None = None,
    **cleaning: Any,
) -> dict[str, Any]:
    (folder / "pairs.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return prepare_corpus(
        folder / "pairs.txt",
        folder / "prepared",
        LanguagesConfig(),
        CleaningConfig(**cleaning),
        SplitConfig(valid_sentences=valid, test_sentences=test, train_lines=train_lines),
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
    of_split = dict.fromkeys(LEFT_OUT.values(), 0)
    assert counts["rejected"] == {"total": 9, **dict.fromkeys(REASONS, 1), **of_split}
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


def test_lower_case_holds_for_both_sides_and_for_references(tmp_path: Path) -> None:
    lines = ["THE Bridge ?\tÉTÉ\u202f?", "the bridge ?\tété ?", *FILLERS]
    counts = prepare(tmp_path, lines, valid=1, test=1, lowercase=True)
    assert counts["rejected"]["duplicate pair"] == 1
    sides = {name: rows(tmp_path, name) for name in ("train", "valid", "test")}
    texts = [row["source"] for side in sides.values() for row in side]
    texts += [row["target"] for row in sides["train"]]
    texts += [text for name in ("valid", "test") for row in sides[name] for text in row["references"]]
    assert sorted(texts) == sorted(
        ["the bridge?", "été ?", *(text for line in FILLERS for text in line.lower().split("\t"))]
    )


def chained_lines() -> list[str]:
    """After 9 lines: three that share a sentence with one of them, one that shares one with those, then 29."""
    return [
        *FILLERS[:9],
        "Number 3!\tLe trois.",
        "Three.\tle trois !",
        "Drei.\tNombre 8",
        "Drei!\tHuit.",
        *FILLERS[9:38],
    ]


def test_the_first_lines_are_for_training_and_the_rest_of_their_groups_is_left_out(tmp_path: Path) -> None:
    counts = prepare(tmp_path, chained_lines(), valid=6, test=7, train_lines=9)
    train = rows(tmp_path, "train")
    assert [f"{row['source']}\t{row['target']}" for row in train] == FILLERS[:9]
    assert (len(rows(tmp_path, "valid")), len(rows(tmp_path, "test"))) == (6, 7)
    sharing, spare = LEFT_OUT.values()
    assert (counts["read"], counts["kept"], counts["rejected"]["total"]) == (42, 22, 20)
    assert (counts["rejected"][sharing], counts["rejected"][spare]) == (4, 16)
    assert (counts["groups"], counts["largest_group"]) == (22, 1)
    rejected = rows(tmp_path, "rejected")
    assert [row["row"] for row in rejected if row["reason"] == sharing] == [9, 10, 11, 12]
    assert rejected[0]["text"] == "Number 3!\tLe trois."
    placed = [row["row"] for name in ("train", "valid", "test", "rejected") for row in rows(tmp_path, name)]
    assert sorted(placed) == list(range(42))


def test_first_lines_for_training_share_no_sentence_with_valid_and_test(tmp_path: Path) -> None:
    draw = random.Random(4)
    lines = [
        f"Number {draw.randrange(150)}{draw.choice('.!')}\tNombre {draw.randrange(600)}" for _ in range(200)
    ]
    prepare(tmp_path, lines, valid=3, test=3, train_lines=50)
    side_of: dict[str, str] = {}
    for name in ("train", "valid", "test"):
        for row in rows(tmp_path, name):
            texts = [row["source"], *row.get("references", [row.get("target")])]
            for key in comparison_keys(pa.array(texts)).to_pylist():
                assert side_of.setdefault(key, name) == name
    assert set(side_of.values()) == {"train", "valid", "test"}


def test_too_few_lines_behind_those_for_training_are_refused(tmp_path: Path) -> None:
    message = (
        r"split\.valid_sentences=15 and split\.test_sentences=15 are 30 together, but only 29 different source "
        r"sentences stand behind the first split\.train_lines=9 lines and share nothing with them; .* or raise "
        r"cleaning\.max_pairs"
    )
    with pytest.raises(ValueError, match=message):
        prepare(tmp_path, chained_lines(), valid=15, test=15, train_lines=9)
