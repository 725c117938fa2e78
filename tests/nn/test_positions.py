"""Positional encoding against its closed form."""

import math

import pytest
import torch

from passerelle.nn.positions import LearnedPositions, PositionalEncoding, build_positions, sinusoidal_encoding


def test_encoding_is_the_closed_form() -> None:
    table = sinusoidal_encoding(60, 10)
    for t in (0, 1, 17, 59):
        for j in range(5):
            angle = t / 10000 ** (2 * j / 10)
            assert table[t, 2 * j].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[t, 2 * j + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_a_fixed_offset_is_a_rotation_of_each_pair() -> None:
    table, offset, d_model = sinusoidal_encoding(50, 8).double(), 7, 8
    rotations = []
    for j in range(d_model // 2):
        pairs = table[:, 2 * j : 2 * j + 2]
        solution = torch.linalg.lstsq(pairs[:-offset], pairs[offset:]).solution
        angle = offset / 10000 ** (2 * j / d_model)
        rotation = torch.tensor(
            [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]], dtype=torch.float64
        )
        torch.testing.assert_close(solution, rotation, atol=1e-4, rtol=0)
        rotations.append(rotation)
    shifted = table[:-offset] @ torch.block_diag(*rotations)
    torch.testing.assert_close(shifted, table[offset:], atol=1e-6, rtol=0)


def test_a_sequence_longer_than_the_table_works_and_continues_it() -> None:
    module = PositionalEncoding(6, num_positions=4)
    zeros = torch.zeros(1, 11, 6)
    torch.testing.assert_close(module(zeros)[0], sinusoidal_encoding(11, 6))
    torch.testing.assert_close(module(zeros[:, :3], start=8), module(zeros)[:, 8:11])


def test_the_table_is_not_a_saved_weight() -> None:
    assert PositionalEncoding(6).state_dict() == {}


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValueError, match=r"d_model must be even \(sines and cosines .*\), but is 7"):
        PositionalEncoding(7)


def test_a_learned_position_adds_one_vector_of_its_own() -> None:
    torch.manual_seed(1)
    module = LearnedPositions(6, num_positions=9)
    x = torch.randn(2, 4, 6)
    module(x, start=3).sum().backward()
    for t in range(4):
        assert torch.equal(module(x, start=3)[:, t], x[:, t] + module.table.weight[3 + t])
    assert module.table.weight.grad is not None
    assert module.table.weight.grad.abs().sum(1).nonzero().flatten().tolist() == [3, 4, 5, 6]


def test_a_sequence_longer_than_the_learned_positions_is_refused() -> None:
    module = build_positions("learned", 6)
    module(torch.zeros(1, 2, 6), start=510)
    with pytest.raises(
        ValueError, match=r"a sequence of 513 tokens is longer than the 512 learned positions"
    ):
        module(torch.zeros(1, 2, 6), start=511)


def test_unknown_positions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"positions must be sinusoidal or learned, but are rotary"):
        build_positions("rotary", 6)
