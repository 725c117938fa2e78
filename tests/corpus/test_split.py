"""Groups of pairs that share a sentence, their names, and the side each goes to."""

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passerelle.config import SplitConfig
from passerelle.corpus.split import (
    SHARING,
    SPARE,
    TEST,
    TRAIN,
    VALID,
    comparison_keys,
    connected_groups,
    deal_rows,
    deal_sides,
    group_names,
)


@pytest.mark.parametrize(
    ("sentence", "key"),
    [
        ("Go!", "go"),
        ("« Où est-il ? »", "oùestil"),
        ("It's 3:30, $5.", "its3305"),
        ("Every day", "everyday"),
        ("STRASSE straße", "strassestrasse"),
        ("é", "é"),
        ("\u2764\ufe0f!?", ""),
        ("snake_case", "snakecase"),
        ("हिन्दी", "हिन्दी"),
    ],
)
def test_sentences_are_compared_by_letters_and_digits(sentence: str, key: str) -> None:
    assert comparison_keys(pa.array([sentence])).to_pylist() == [key]


def test_many_sentences_have_the_keys_of_each() -> None:
    sentences = [f"N° {number}!" for number in range(70_001)]
    expected = [f"n{number}" for number in range(70_001)]
    assert comparison_keys(pa.array(sentences)).to_pylist() == expected
    assert comparison_keys(pa.chunked_array([sentences[:3], sentences[3:]])).to_pylist() == expected
    assert comparison_keys(pa.array([], pa.string())).to_pylist() == []


pairs = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=30)


@settings(deadline=None)
@given(pairs)
def test_groups_are_the_connected_components(rows: list[tuple[int, int]]) -> None:
    groups = connected_groups(*np.array(rows, np.int64).T)
    component = list(
        range(len(rows))
    )  # the oracle: merge any two rows that share a side, until nothing changes
    for _ in rows:
        for i, (source, target) in enumerate(rows):
            for j, (other_source, other_target) in enumerate(rows):
                if source == other_source or target == other_target:
                    component[i] = component[j] = min(component[i], component[j])
    assert groups.tolist() == component


def test_a_long_chain_is_one_group() -> None:
    steps = np.arange(2001)
    order = np.random.default_rng(0).permutation(2001)
    assert not connected_groups((steps // 2)[order], ((steps + 1) // 2)[order]).any()


def test_a_group_is_named_by_its_smallest_source_whatever_the_order_of_rows() -> None:
    keys = ["b", "c", "a", "b", "d"]
    names, numbers = group_names(np.array([0, 1, 0, 0, 1]), pa.array(keys))
    (name_of_a, name_of_c), _ = group_names(np.array([0, 1]), pa.array(["a", "c"]))
    assert [names[number] for number in numbers] == [name_of_a, name_of_c, name_of_a, name_of_a, name_of_c]
    assert name_of_a != name_of_c


def deal(names: list[str], sizes: list[int], valid: int, test: int, seed: int = 0) -> np.ndarray:
    config = SplitConfig(seed=seed, valid_sentences=valid, test_sentences=test)
    return deal_sides(names, np.array(sizes, np.int64), config)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(5, 60), st.integers(5, 60))
def test_valid_and_test_have_the_size_asked_for_within_a_tenth(seed: int, valid: int, test: int) -> None:
    sizes = random.Random(seed).choices([1, 1, 1, 2, 3, 9], k=400)
    sides = deal([f"{i:x}" for i in range(400)], sizes, valid, test, seed)
    for side, asked in ((VALID, valid), (TEST, test)):
        assert asked <= sum(np.array(sizes)[sides == side]) <= asked + asked // 10


def test_another_seed_deals_otherwise() -> None:
    names = [f"{i:x}" for i in range(100)]
    first, second = (deal(names, [1] * 100, 20, 20, seed) for seed in (0, 1))
    assert (first != second).any()
    assert (first == deal(names, [1] * 100, 20, 20, 0)).all()


def test_old_test_groups_never_enter_training_when_the_corpus_grows() -> None:
    names = [f"{i:x}" for i in range(1000)]
    small = deal(names[:700], [1] * 700, 50, 50)
    shuffled = random.Random(1).sample(range(1000), 1000)
    large = deal([names[i] for i in shuffled], [1] * 1000, 50, 50)
    side_of = dict(zip(shuffled, large, strict=True))
    old_test = [side_of[i] for i in np.flatnonzero(small == TEST)]
    assert len(old_test) == 50
    assert TRAIN not in old_test
    assert sum(side == TEST for side in old_test) > 25


def test_without_first_lines_each_row_has_the_side_of_its_group() -> None:
    names, groups = [f"{i:x}" for i in range(40)], np.arange(100) % 40
    config = SplitConfig(valid_sentences=9, test_sentences=9)
    sides = deal_rows(names, np.ones(40, np.int64), groups, np.arange(100), config)
    assert (sides == deal(names, [1] * 40, 9, 9)[groups]).all()


def test_rows_behind_the_first_lines_are_valid_test_sharing_or_spare() -> None:
    names, groups = [f"{i:x}" for i in range(40)], np.arange(100) % 40
    lines = np.arange(100) * 3  # some lines were rejected before
    config = SplitConfig(valid_sentences=9, test_sentences=9, train_lines=30)
    sides = deal_rows(names, np.ones(40, np.int64), groups, lines, config)
    assert (sides[:10] == TRAIN).all()
    assert set(sides[groups < 10][10:].tolist()) == {SHARING}
    by_group = {group: set(sides[groups == group].tolist()) for group in range(10, 40)}
    assert all(len(found) == 1 for found in by_group.values())
    found = [side for sides_of_group in by_group.values() for side in sides_of_group]
    assert (found.count(VALID), found.count(TEST), found.count(SPARE)) == (9, 9, 12)


def test_first_lines_change_nothing_in_the_order_of_the_other_groups() -> None:
    names = [f"{i:x}" for i in range(100)]
    config = SplitConfig(valid_sentences=9, test_sentences=9, train_lines=1)
    sides = deal_rows(names, np.ones(100, np.int64), np.arange(100), np.arange(100), config)
    assert sides[0] == TRAIN
    assert (sides[1:] == VALID).tolist() == (deal(names[1:], [1] * 99, 9, 9) == VALID).tolist()


def test_a_corpus_too_small_for_the_split_is_refused() -> None:
    message = (
        r"split\.valid_sentences=3 and split\.test_sentences=3 are 6 together, but may be at most half of "
        r"the corpus's 11 different source sentences; lower split\.valid_sentences"
    )
    with pytest.raises(ValueError, match=message):
        deal([f"{i:x}" for i in range(11)], [1] * 11, 3, 3)
    assert (
        sorted(deal([f"{i:x}" for i in range(12)], [1] * 12, 3, 3)) == [TRAIN] * 6 + [VALID] * 3 + [TEST] * 3
    )


def test_a_corpus_that_hangs_together_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"too many of the corpus's 24 different .* \(largest group: 20\); lower"
    ):
        deal(["a", "b", "c", "d", "e"], [20, 1, 1, 1, 1], 3, 3)
