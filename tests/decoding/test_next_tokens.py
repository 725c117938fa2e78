"""The next token: the likeliest ones as torch finds them, and draws as often as their probability says."""

import math

import pytest
import torch

from passerelle.data.special import BOS, EOS, PAD, UNK
from passerelle.decoding.next_tokens import BLOCK_TOKENS, drawn, likeliest

SIZES = [4, 6, 64, 131, 640, 703, 1500, 8000]


def random_logits(vocab_size: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(vocab_size)
    return 3.0 * torch.randn(37, vocab_size, generator=generator)


@pytest.mark.parametrize("vocab_size", SIZES)
@pytest.mark.parametrize("width", [1, 2, 5, 13])
def test_the_likeliest_are_those_of_a_plain_sort(vocab_size: int, width: int) -> None:
    logits = random_logits(vocab_size)
    values, tokens = likeliest(logits, width)
    expected = logits.double().log_softmax(1)
    expected[:, [PAD, UNK, BOS]] = -math.inf
    ordered = expected.sort(dim=1, descending=True)
    width = min(width, vocab_size - EOS)
    assert torch.equal(tokens, ordered.indices[:, :width])
    torch.testing.assert_close(values.double(), ordered.values[:, :width], atol=1e-5, rtol=0.0)


@pytest.mark.parametrize("column", [EOS, EOS + BLOCK_TOKENS, 700, 702])
def test_the_best_is_found_in_every_place(column: int) -> None:
    logits = torch.zeros(2, 703)
    logits[:, column] = 5.0
    assert likeliest(logits, 1)[1].tolist() == [[column], [column]]


def draws(num: int) -> torch.Tensor:
    """Evenly spread, so that counts are exact to one."""
    return (torch.arange(num, dtype=torch.float64) + 0.5) / num


def counts(
    logits: torch.Tensor,
    num: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    """Of each token, in `num` draws after one hypothesis."""
    _, tokens = drawn(logits.expand(num, -1), draws(num), temperature=temperature, top_k=top_k, top_p=top_p)
    return tokens.bincount(minlength=logits.size(0)).double()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_draws_follow_the_probabilities_at_a_temperature(temperature: float) -> None:
    logits = random_logits(23)[0]
    expected = (logits[EOS:].double() / temperature).softmax(0)
    found = counts(logits, 20_000, temperature=temperature)
    assert found[:EOS].sum() == 0
    torch.testing.assert_close(found[EOS:] / 20_000, expected, atol=1e-4, rtol=0.0)


@pytest.mark.parametrize("top_k", [1, 4, 19, 50])
def test_top_k_draws_among_the_k_likeliest_alone(top_k: int) -> None:
    logits = random_logits(23)[1]
    found = counts(logits, 20_000, top_k=top_k)[EOS:] / 20_000
    probs = logits[EOS:].double().softmax(0)
    kept = torch.zeros_like(probs).index_fill_(0, probs.topk(min(top_k, 20)).indices, 1.0) * probs
    torch.testing.assert_close(found, kept / kept.sum(), atol=1e-4, rtol=0.0)


@pytest.mark.parametrize("top_p", [1e-9, 0.3, 0.9, 1.0])
def test_top_p_draws_among_the_fewest_tokens_that_reach_p(top_p: float) -> None:
    logits = random_logits(23)[2]
    probs = logits[EOS:].double().softmax(0)
    expected, total = torch.zeros_like(probs), 0.0
    for index in probs.argsort(descending=True).tolist():
        if total < top_p:
            expected[index] = probs[index]
            total += float(probs[index])
    found = counts(logits, 20_000, top_p=top_p)[EOS:] / 20_000
    torch.testing.assert_close(found, expected / total, atol=1e-4, rtol=0.0)


def test_top_p_counts_what_top_k_left() -> None:
    logits = torch.tensor([9.0, 9.0, 9.0, 0.4, 0.3, 0.2, 0.1]).log()  # PAD, UNK and BOS count for nothing
    found = counts(logits, 1000, top_k=2, top_p=0.5)  # of 4/7 and 3/7 the first reaches a half
    assert found.nonzero().flatten().tolist() == [3]


def test_the_log_probability_of_a_draw_is_the_models_own() -> None:
    logits = random_logits(23)[:5]
    log_probs, tokens = drawn(logits, draws(5), temperature=0.3, top_k=3, top_p=0.8)
    expected = logits.double().log_softmax(1).gather(1, tokens[:, None]).squeeze(1)
    torch.testing.assert_close(log_probs, expected)


@pytest.mark.parametrize("draw", [0.0, 1.0 - 2.0**-24])
def test_the_ends_of_the_range_draw_possible_tokens(draw: float) -> None:
    logits = torch.full((1, 9), -math.inf)
    logits[0, 5:7] = 0.0
    _, tokens = drawn(logits, torch.tensor([draw]).double(), temperature=1.0, top_k=None, top_p=None)
    assert tokens.item() == (5 if draw == 0.0 else 6)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_logits_without_numbers_are_refused(value: float) -> None:
    logits = torch.zeros(3, 700)
    logits[1, 300] = value
    message = r"no token a probability .* its weights are damaged"
    with pytest.raises(ValueError, match=message):
        likeliest(logits, 2)
    with pytest.raises(ValueError, match=message):
        drawn(logits, draws(3), temperature=1.0, top_k=None, top_p=None)
