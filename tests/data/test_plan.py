"""The order of the data: complete, balanced, repeatable, indifferent to workers and restarts."""

from itertools import islice

import numpy as np
import pytest

from passerelle.data.plan import Lengths, epoch_micro_batches, training_steps

SHARD_ROWS = [301, 17, 222]
BUDGET = 97


def shard_lengths(shard: int) -> Lengths:
    generator = np.random.default_rng(shard)
    source = generator.integers(2, 20, SHARD_ROWS[shard], dtype=np.int32)
    return source, np.maximum(2, source + generator.integers(-2, 5, len(source), dtype=np.int32))


SOURCE_LENGTHS, TARGET_LENGTHS = (
    np.concatenate([shard_lengths(shard)[side] for shard in range(3)]) for side in range(2)
)


def epoch(
    seed: int = 0, number: int = 0, window_rows: int = 1000, sentences: int | None = None
) -> list[list[int]]:
    batches = epoch_micro_batches(
        SHARD_ROWS,
        shard_lengths,
        micro_batch_tokens=BUDGET,
        micro_batch_sentences=sentences,
        seed=seed,
        epoch=number,
        window_rows=window_rows,
    )
    return [batch.tolist() for batch in batches]


def steps(
    seed: int, first_step: int, count: int, sentences: int | None = None, window_rows: int = 1000
) -> list[list[list[int]]]:
    plan = training_steps(
        SHARD_ROWS,
        shard_lengths,
        micro_batch_tokens=BUDGET,
        micro_batch_sentences=sentences,
        micro_batches_per_step=3,
        seed=seed,
        first_step=first_step,
        window_rows=window_rows,
    )
    return [[batch.tolist() for batch in step] for step in islice(plan, count)]


@pytest.mark.parametrize("sentences", [None, 7])
@pytest.mark.parametrize("window_rows", [1000, 320, 1])
def test_an_epoch_has_every_pair_once(window_rows: int, sentences: int | None) -> None:
    rows = [row for batch in epoch(window_rows=window_rows, sentences=sentences) for row in batch]
    assert sorted(rows) == list(range(sum(SHARD_ROWS)))


@pytest.mark.parametrize("window_rows", [1000, 320, 1])
def test_no_micro_batch_is_over_its_token_budget_and_each_is_as_full_as_its_pairs_allow(
    window_rows: int,
) -> None:
    batches = epoch(window_rows=window_rows)
    for batch in batches:
        longest = max(SOURCE_LENGTHS[batch].max(), TARGET_LENGTHS[batch].max())
        assert len(batch) * longest <= BUDGET
    tokens = TARGET_LENGTHS.sum() / (len(batches) * BUDGET)
    assert tokens > 0.7


def test_no_micro_batch_has_more_pairs_than_allowed_nor_fewer_than_its_limits_let_it() -> None:
    batches = epoch(sentences=7)
    longest = [max(SOURCE_LENGTHS[batch].max(), TARGET_LENGTHS[batch].max()) for batch in batches]
    assert max(map(len, batches)) == 7
    assert all(len(batch) * most <= BUDGET for batch, most in zip(batches, longest, strict=True))
    # A pair more of the longest length would be too much, but for the epoch's last micro-batch.
    assert sum(len(batch) < min(7, BUDGET // 24) for batch in batches) <= 1
    assert epoch(sentences=BUDGET) == epoch()


@pytest.mark.parametrize("sentences", [None, 7])
def test_micro_batches_are_those_of_sorted_pairs_taken_one_by_one(sentences: int | None) -> None:
    longer = sorted(zip(TARGET_LENGTHS.tolist(), SOURCE_LENGTHS.tolist(), strict=True))
    cut: list[list[tuple[int, int]]] = [[]]
    for pair in longer:
        more = [*cut[-1], pair]
        if len(more) * max(map(max, more)) > BUDGET or len(more) > (sentences or len(longer)):
            cut.append([pair])
        else:
            cut[-1] = more
    found = [
        sorted(zip(TARGET_LENGTHS[batch].tolist(), SOURCE_LENGTHS[batch].tolist(), strict=True))
        for batch in epoch(sentences=sentences)
    ]
    assert sorted(found) == sorted(cut)


def test_with_tokens_to_spare_an_epoch_is_cut_by_sentences_alone() -> None:
    lengths = np.arange(2, 65, dtype=np.int32)
    batches = epoch_micro_batches(
        [63], lambda _: (lengths, lengths), micro_batch_tokens=9999, micro_batch_sentences=16, seed=3, epoch=0
    )
    assert sorted(batch.tolist() for batch in batches) == [
        [*range(16)], [*range(16, 32)], [*range(32, 48)], [*range(48, 63)]
    ]  # fmt: skip


def test_padding_is_a_small_share() -> None:
    generator = np.random.default_rng(0)
    source = generator.integers(3, 15, 20_000, dtype=np.int32)
    target = source + generator.integers(0, 3, 20_000, dtype=np.int32)
    batches = list(
        epoch_micro_batches([20_000], lambda _: (source, target), micro_batch_tokens=1000, seed=0, epoch=0)
    )
    for lengths in (source, target):
        padded = sum(len(batch) * lengths[batch].max() for batch in batches)
        assert 1 - lengths.sum() / padded < 0.05


def test_the_same_seed_and_epoch_give_the_same_order_and_others_give_others() -> None:
    assert epoch(1, 2) == epoch(1, 2)
    orders = [epoch(seed, number) for seed in range(2) for number in range(2)]
    assert all(orders[i] != orders[j] for i in range(4) for j in range(i))


def test_batches_of_another_epoch_are_made_of_other_pairs() -> None:
    first, second = ({tuple(sorted(batch)) for batch in epoch(0, number)} for number in range(2))
    assert len(first & second) < len(first) / 2


def test_steps_are_full_and_run_on_across_the_end_of_an_epoch() -> None:
    per_epoch = len(epoch())
    plan = steps(0, 0, 2 * per_epoch // 3)
    assert all(len(step) == 3 for step in plan)
    flat = [batch for step in plan for batch in step]
    assert flat[:per_epoch] == epoch(0, 0)
    assert flat[per_epoch:] == epoch(0, 1)[: len(flat) - per_epoch]


@pytest.mark.parametrize("sentences", [None, 5])
@pytest.mark.parametrize("window_rows", [1000, 320, 1])
@pytest.mark.parametrize("first_step", [1, 5, 40, 77])
def test_a_plan_taken_up_at_any_step_is_the_same_plan(
    first_step: int, window_rows: int, sentences: int | None
) -> None:
    resumed = steps(3, first_step, 4, sentences, window_rows)
    assert resumed == steps(3, 0, first_step + 4, sentences, window_rows)[first_step:]


@pytest.mark.parametrize("sentences", [None, 5])
@pytest.mark.parametrize("num_workers", [1, 2, 3, 5])
def test_workers_together_run_each_micro_batch_once(num_workers: int, sentences: int | None) -> None:
    step = steps(0, 7, 1, sentences)[0]
    shares = [step[rank::num_workers] for rank in range(num_workers)]
    assert sorted(batch for share in shares for batch in share) == sorted(step)


def test_a_sentence_longer_than_the_budget_is_refused_with_the_key_to_change() -> None:
    lengths = np.array([3, 50, 4], dtype=np.int32)
    with pytest.raises(ValueError, match=r"training.micro_batch_tokens must be at least 50.*but is 49"):
        list(epoch_micro_batches([3], lambda _: (lengths, lengths), micro_batch_tokens=49, seed=0, epoch=0))


def test_an_empty_corpus_is_refused() -> None:
    empty = np.zeros(0, dtype=np.int32)
    with pytest.raises(ValueError, match="no sentence pairs to train on"):
        next(
            training_steps(
                [0], lambda _: (empty, empty), micro_batch_tokens=9, micro_batches_per_step=1, seed=0
            )
        )
