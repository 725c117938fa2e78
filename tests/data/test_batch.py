"""From ids to the tensors of a micro-batch."""

import numpy as np

from passerelle.data.batch import make_batch


def test_a_batch_written_out_by_hand() -> None:
    batch = make_batch(
        np.array([10, 11, 12, 20]), np.array([0, 3, 4]), np.array([30, 31, 40, 41, 42]), np.array([0, 2, 5])
    )
    assert batch.source.tolist() == [[10, 11, 12, 3], [20, 3, 0, 0]]
    assert batch.source_lengths.tolist() == [4, 2]
    assert batch.target_in.tolist() == [[2, 30, 31, 0], [2, 40, 41, 42]]
    assert batch.target_out.tolist() == [30, 31, 3, 40, 41, 42, 3]
    assert batch.target_positions.tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert batch.num_tokens == 7


def test_an_empty_sentence_is_its_end_alone() -> None:
    batch = make_batch(np.array([10]), np.array([0, 0, 1]), np.array([30]), np.array([0, 1, 1]))
    assert batch.source.tolist() == [[3, 0], [10, 3]]
    assert batch.target_in.tolist() == [[2, 30], [2, 0]]
    assert batch.target_out.tolist() == [30, 3, 3]
