"""The leak report counts what is in common: checked against counting one by one."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from passerelle.evaluation.leaks import BLOCK, KINDS, SPLITS, are_near, leak_report, random_split, read_splits

TRAIN = [
    ("Where is the old station?", "Où est la vieille gare ?"),
    ("Where is the old station?", "La vieille gare, où est-elle ?"),
    ("I am tired.", "Je suis fatigué."),
    ("I am very tired.", "Je suis très fatigué."),
    ("The cat sleeps.", "Le chat dort."),
]
TEST = [
    ("where is the OLD station", ["Tu dors."]),  # the source of two training rows
    ("I'm tired.", ["Il neige.", "je suis FATIGUÉ !"]),  # a target, by its second reference; a near source
    ("The cats sleep.", ["Les chats dorment."]),  # a near source
    ("It is raining cats and dogs tonight.", ["Il pleut à verse."]),
]
VALID = [("Tomorrow at seven.", ["Demain à sept heures."])]


def write_prepared(folder: Path) -> Path:
    sources, targets = zip(*TRAIN, strict=True)
    pq.write_table(pa.table({"source": sources, "target": targets}), folder / "train.parquet")
    for split, rows in (("valid", VALID), ("test", TEST)):
        table = pa.table({"source": [row[0] for row in rows], "references": [row[1] for row in rows]})
        pq.write_table(table, folder / f"{split}.parquet")
    return folder


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    return write_prepared(tmp_path)


def common_letters(first: str, second: str) -> int:
    """Length of their longest common subsequence, by the textbook's table."""
    row = [0] * (len(second) + 1)
    for letter in first:
        above, left = row, [0]
        for position, other in enumerate(second):
            left.append(above[position] + 1 if letter == other else max(left[-1], above[position + 1]))
        row = left
    return row[-1]


def is_near(first: str, second: str) -> bool:
    """2 common letters of 100 in both together are 2 %: in whole numbers, so that 90 % is 90 %."""
    return 200 * common_letters(first, second) >= 90 * (len(first) + len(second))


def test_what_is_shared_and_what_is_near_is_counted(prepared: Path) -> None:
    report = leak_report(read_splits(prepared))
    counts = {kind: report[f"test_{kind}"] for kind in KINDS}
    assert counts == {
        "shared_source": 1,
        "shared_target": 1,
        "shared": 2,
        "near_source": 3,
        "near_target": 1,
        "near": 3,
    }
    assert report["test_sentences"] == 4
    assert report["test_shared_share"] == 0.5
    assert report["near_percent"] == 90
    assert {report[f"valid_{kind}"] for kind in KINDS} == {0}


def test_every_name_has_a_number(prepared: Path) -> None:
    report = leak_report(read_splits(prepared))
    names = [
        f"{name}_{kind}{end}"
        for name in ("test", "valid", "random")
        for kind in KINDS
        for end in ("", "_share")
    ]
    assert set(report) == {*names, "near_percent", "test_sentences", "valid_sentences", "random_sentences"}
    assert report["random_sentences"] == 5  # pairs of the test
    assert report == leak_report(read_splits(prepared))


def test_a_random_split_deals_out_every_row_once(prepared: Path) -> None:
    splits = read_splits(prepared)
    sides = random_split(splits)
    assert [len(sides[split].sources) for split in SPLITS] == [5, 1, 5]
    dealt = sorted(
        (source, target)
        for side in sides.values()
        for source, (target,) in zip(side.sources, side.targets, strict=True)
    )
    rows = [*TRAIN, *((source, target) for source, texts in TEST + VALID for target in texts)]
    assert dealt == sorted(rows)
    assert [*sides["train"].sources] != [source for source, _ in TRAIN]


def test_near_texts_are_those_that_counting_finds() -> None:
    """Lengths at the bounds, and more texts than are compared at once."""
    letters = random.Random(5)
    known = {"".join(letters.choices("ab", k=letters.randint(1, 24))) for _ in range(300)}
    asked = [
        "".join(letters.choices("abc", (8, 8, 1), k=letters.randint(1, 24))) for _ in range(2 * BLOCK + 7)
    ]
    asked += ["a" * 11, "a" * 9, "a" * 19]
    expected = [any(is_near(text, other) for other in known) for text in asked]
    assert 0.2 < sum(expected) / len(expected) < 0.8
    assert are_near(asked, known).tolist() == expected


@pytest.mark.parametrize(("length", "expected"), [(8, False), (9, True), (11, True), (12, True), (13, False)])
def test_near_is_ninety_percent_and_not_less(length: int, expected: bool) -> None:
    assert are_near(["a" * length], ["a" * 10]).tolist() == [expected]  # 9 of 9 + 10: 94.7 %; 12: 90.9 %


def test_exactly_ninety_percent_is_near() -> None:
    assert are_near(["abcdefghiX"], ["abcdefghij"]).tolist() == [True]  # 18 of 20
    assert are_near(["abcdefghX"], ["abcdefghi"]).tolist() == [False]  # 16 of 18: 88.9 %


@pytest.mark.parametrize("split", SPLITS)
def test_a_missing_file_is_named(split: str, prepared: Path) -> None:
    (prepared / f"{split}.parquet").unlink()
    with pytest.raises(ValueError, match=rf"{split}.parquet: no such file; run stage prepare first"):
        leak_report(read_splits(prepared))


def test_sentences_without_letters_are_all_alike(prepared: Path) -> None:
    columns: dict[str, Any] = {"source": ["?!", "I."], "references": [["..."], ["Moi."]]}
    pq.write_table(pa.table(columns), prepared / "test.parquet")
    pq.write_table(pa.table({"source": ["..."], "target": ["Quoi ?"]}), prepared / "train.parquet")
    report = leak_report(read_splits(prepared))
    assert (report["test_shared_source"], report["test_near_source"], report["test_near_target"]) == (1, 1, 0)
