"""Sampling: translations drawn from the model's probabilities instead of searched for.

The draws of a sentence come from a generator that is keyed by the seed and the sentence's own tokens, so they
depend neither on the other sentences nor on their order.

Shapes: N sentences, R of them whose translation goes on, L most tokens of a translation, T tokens so far.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from passerelle.data.special import BOS, EOS
from passerelle.decoding.hypothesis import Hypothesis, LengthRule, divisor
from passerelle.decoding.next_tokens import drawn
from passerelle.nn.model import Seq2Seq


def uniform_draws(sources: Sequence[Sequence[int]], length: int, *, seed: int, number: int) -> Tensor:
    """Numbers (N, L) in float64, from 0 to below 1, L = length: a row is a function of (seed, number, source).

    number tells the several translations of one sentence apart. A longer row begins with the shorter one.
    """
    rows = np.empty((len(sources), length))
    for row, source in zip(rows, sources, strict=True):
        key = hashlib.blake2b(repr((seed, number, *source)).encode(), digest_size=16).digest()
        generator = np.random.Generator(np.random.Philox(key=int.from_bytes(key)))
        row[:] = generator.random(
            length, dtype=np.float32
        )  # of 24 bits, so that times 1 - 1e-16 is below 1 too
    return torch.from_numpy(rows)


@torch.inference_mode()
def sample(
    model: Seq2Seq,
    source: Tensor,
    source_lengths: Tensor,
    *,
    draws: Tensor,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    length_penalty: float,
    max_lengths: Tensor,
    length_rule: LengthRule = "plain",
) -> list[Hypothesis]:
    """For each sentence one translation, drawn token by token as `next_tokens.drawn` does.

    source (N, S), source_lengths (N,), max_lengths (N,) as for `search`; draws (N, L), L at least the largest of
    max_lengths. Log-probability and score are the model's own, as if the translation had been searched for.
    """
    memory = model.encode(source, source_lengths)
    state = model.start(memory)
    sentence = torch.arange(source.size(0), device=source.device)  # (R,)
    log_prob = torch.zeros(source.size(0), dtype=torch.float64, device=source.device)
    tokens = source.new_empty(source.size(0), 0)  # (R, T)
    last = torch.full_like(source[:, :1], BOS)
    found: dict[int, Hypothesis] = {}
    while sentence.numel():
        logits, state = model.decode(last, memory, state)
        step_log_prob, token = drawn(
            logits[:, -1],
            draws[sentence, tokens.size(1)],
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
        )
        log_prob = log_prob + step_log_prob
        last = token.unsqueeze(1)
        tokens = torch.cat((tokens, last), dim=1)
        is_ended = (token == EOS) | (max_lengths[sentence] == tokens.size(1))
        if is_ended.any():
            divided_by = divisor(float(tokens.size(1)), length_penalty, length_rule)
            rows = zip(
                sentence[is_ended].tolist(),
                tokens[is_ended].tolist(),
                log_prob[is_ended].tolist(),
                strict=True,
            )
            for index, ids, total in rows:
                found[index] = Hypothesis(tuple(ids), total, total / divided_by, ids[-1] == EOS)
            going_on = (~is_ended).nonzero().squeeze(1)
            memory, state = memory.reorder(going_on), state.reorder(going_on)
            sentence, log_prob = sentence[going_on], log_prob[going_on]
            tokens, last = tokens[going_on], last[going_on]
    return [found[index] for index in range(source.size(0))]
