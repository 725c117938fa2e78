"""Hypotheses of one sentence share its memory."""

import torch

from passerelle.nn.sharing import share
from passerelle.nn.transformer_state import TransformerMemory


def memory_of(num_sentences: int) -> TransformerMemory:
    """H=2, S=3, E=4; the numbers of a sentence are its own."""
    key = torch.arange(num_sentences * 24, dtype=torch.float64).view(num_sentences, 2, 3, 4)
    return TransformerMemory(torch.ones(num_sentences, 3, dtype=torch.bool), ((key, -key),))


def test_rows_stand_beside_those_of_their_sentence() -> None:
    sharing = share(torch.tensor([1, 0, 1, 3, 1]), 4)
    assert sharing is not None
    rows = torch.arange(1.0, 6.0).view(5, 1, 1)
    grid = sharing.group(rows)  # (4, 3, 1)
    assert grid.squeeze(2).tolist() == [[2, 0, 0], [1, 3, 5], [0, 0, 0], [4, 0, 0]]
    assert torch.equal(sharing.ungroup(grid), rows)


def test_several_tokens_of_a_row_stay_together() -> None:
    sharing = share(torch.tensor([0, 1, 1]), 2)
    assert sharing is not None
    rows = torch.arange(1.0, 13.0).view(3, 2, 2)
    grid = sharing.group(rows)
    assert grid.tolist() == [[[1, 2], [3, 4], [0, 0], [0, 0]], [[5, 6], [7, 8], [9, 10], [11, 12]]]
    assert torch.equal(sharing.ungroup(grid), rows)


def test_rows_that_have_each_their_own_sentence_share_nothing() -> None:
    assert share(torch.arange(4), 4) is None
    assert share(torch.tensor([0, 2, 1]), 3) is not None
    assert share(torch.arange(2), 3) is not None


def test_memory_is_kept_while_most_sentences_are_attended_to() -> None:
    memory = memory_of(8)
    wide = memory.reorder(torch.arange(8).repeat_interleave(5))
    later = wide.reorder(torch.arange(5, 40))  # one sentence of 8 is done
    assert later.layers is memory.layers
    assert later.sharing is not None
    assert later.sharing.sentence.tolist() == torch.arange(1, 8).repeat_interleave(5).tolist()


def test_memory_of_sentences_without_rows_is_dropped_when_they_are_many() -> None:
    memory = memory_of(8)
    half = memory.reorder(torch.tensor([1, 1, 3, 5, 7, 7]))
    assert torch.equal(half.layers[0][0], memory.layers[0][0][[1, 3, 5, 7]])
    assert half.sharing is not None
    assert half.sharing.sentence.tolist() == [0, 0, 1, 2, 3, 3]
    assert half.reorder(torch.tensor([0, 2, 3, 5])).sharing is None
    nothing = half.reorder(torch.tensor([], dtype=torch.long))
    assert nothing.mask.size(0) == 0
