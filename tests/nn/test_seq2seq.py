"""What every model owes to training and search, whatever its kind: `nn.model.Seq2Seq` in the forms there are."""

from itertools import product

import pytest
import torch
from torch import nn

from passerelle.nn.model import Seq2Seq
from small_networks import LENGTHS, SOURCE, TARGET, V, logits, make_bahdanau, make_transformer

FORMS = [
    *product(("pre", "post"), ("sinusoidal", "learned"), ("dot", "additive")),
    *product(("gru", "lstm"), ("additive", "dot")),
]


@pytest.fixture(params=FORMS, ids="-".join)
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    if request.param[0] in ("gru", "lstm"):
        return make_bahdanau(*request.param)
    norm, positions, attention = request.param
    return make_transformer(norm == "pre", positions=positions, attention=attention)


def test_decoding_step_by_step_equals_decoding_at_once(model: Seq2Seq) -> None:
    with torch.no_grad():
        memory = model.encode(SOURCE, LENGTHS)
        state, steps = model.start(memory), []
        for chunk in (TARGET[:, :1], TARGET[:, 1:3], TARGET[:, 3:4], TARGET[:, 4:]):
            step, state = model.decode(chunk, memory, state)
            steps.append(step)
        torch.testing.assert_close(torch.cat(steps, 1), logits(model, SOURCE, LENGTHS, TARGET))


def test_padding_and_neighbours_do_not_change_logits(model: Seq2Seq) -> None:
    with torch.no_grad():
        together = logits(model, SOURCE, LENGTHS, TARGET)
        for row, length in enumerate(LENGTHS.tolist()):
            alone = logits(
                model, SOURCE[row : row + 1, :length], LENGTHS[row : row + 1], TARGET[row : row + 1]
            )
            torch.testing.assert_close(together[row], alone[0])
        garbage = SOURCE + 5 * (torch.arange(7) >= LENGTHS[:, None])
        longer = nn.functional.pad(garbage, (0, 2), value=8)
        for source in (garbage, longer):
            torch.testing.assert_close(logits(model, source, LENGTHS, TARGET), together)


def test_a_later_target_token_does_not_change_earlier_logits(model: Seq2Seq) -> None:
    changed = TARGET.clone()
    changed[:, 3] = (changed[:, 3] + 1) % V
    with torch.no_grad():
        before, after = (logits(model, SOURCE, LENGTHS, target) for target in (TARGET, changed))
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3:], after[:, 3:])


@pytest.mark.parametrize(
    "indexes",
    [
        [[2, 0, 0]],
        [[0, 1, 2]],
        [[1, 2, 0]],
        [
            [0, 0, 0, 1, 1, 2],
            [5, 0, 3, 3, 1],
        ],  # hypotheses of each sentence, then some of them in another order
        [[0, 0, 1, 1, 2, 2], [0, 1, 4, 5], [3, 0]],  # one sentence is done after the other
    ],
)
def test_state_and_memory_follow_a_reordered_batch(model: Seq2Seq, indexes: list[list[int]]) -> None:
    with torch.no_grad():
        memory = model.encode(SOURCE, LENGTHS)
        _, state = model.decode(TARGET[:, :2], memory, model.start(memory))
        rows = torch.arange(3)
        for index in map(torch.tensor, indexes):
            memory, state, rows = memory.reorder(index), state.reorder(index), rows[index]
        expected = logits(model, SOURCE, LENGTHS, TARGET)[rows]
        step, _ = model.decode(TARGET[rows, 2:3], memory, state)
        anew, _ = model.decode(TARGET[rows], memory, model.start(memory))
    torch.testing.assert_close(step, expected[:, 2:3])
    torch.testing.assert_close(anew, expected)
