"""The grid in a terminal: shades where the weights are, words above and beside them."""

import numpy as np
import pytest

from passerelle.evaluation.alignment_grid import alignment_grid
from passerelle.evaluation.attention_maps import AttentionMap


def attention(cross: list[list[float]], source: tuple[str, ...], chosen: tuple[str, ...]) -> AttentionMap:
    weights = {"cross": np.array(cross, dtype=np.float32)[None, None]}
    return AttentionMap("s", "t", source, ("<s>", *chosen[:-1]), chosen, weights)


@pytest.fixture
def example() -> AttentionMap:
    cross = [[0.8, 0.15, 0.05], [0.05, 0.4, 0.55], [0.0, 0.2, 0.8]]
    return attention(cross, ("▁Go", "▁home", "</s>"), ("▁Va", "▁chez", "</s>"))


def test_blocks_are_as_dark_as_weights_are_high(example: AttentionMap) -> None:
    assert alignment_grid(example, 80).split("\n") == [
        "      Go  home  </s>",
        "Va    ██  ░░░░",
        "chez      ▒▒▒▒  ▓▓▓▓",
        "</s>      ░░░░  ████",
        "",
        "█ 80% of a row, the highest; ░ from 10%",
    ]


def test_weights_are_the_mean_of_layers_and_heads(example: AttentionMap) -> None:
    [[first]] = example.weights["cross"]
    both = np.stack([first, first[:, ::-1]])[None]
    mixed = AttentionMap(
        "s",
        "t",
        *[getattr(example, name) for name in ("source_tokens", "target_tokens", "predicted_tokens")],
        {"cross": both},
    )
    top = alignment_grid(mixed, 80).split("\n")[1]
    assert top.split() == ["Va", "██", "░░░░", "████"]


def test_what_is_too_wide_follows_below(example: AttentionMap) -> None:
    lines = alignment_grid(example, 14).split("\n")
    assert all(len(line) <= 14 for line in lines[:-1])
    assert lines[0] == "      Go  home"
    assert lines[5] == "      </s>"
    assert lines[8] == "</s>  ████"


def test_wide_characters_take_two_columns() -> None:
    lines = alignment_grid(attention([[0.5, 0.5]], ("▁一つ", "▁a"), ("▁é",)), 80).split("\n")
    assert lines[0] == "   一つ  a"
    assert lines[1] == "é  ████  █"
