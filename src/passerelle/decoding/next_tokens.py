"""From a model's logits to the next token of each hypothesis: the likeliest ones, or one that is drawn.

Shapes: R hypotheses, V vocabulary, K tokens of one hypothesis.
"""

import math

import torch
from torch import Tensor

from passerelle.data.special import EOS

# PAD, UNK and BOS have the ids below EOS: a translation never contains them.
FIRST_ALLOWED = EOS
BLOCK_TOKENS = 64
"""Of a block in `_largest`."""


def likeliest(logits: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The width likeliest tokens after each hypothesis: log-probabilities (R, K) and ids (R, K), best first.

    logits (R, V). K is smaller than width where the vocabulary is. Raises ValueError where a row has no number.
    """
    log_probs = logits.float().log_softmax(1)
    log_probs[:, :FIRST_ALLOWED] = -math.inf
    values, tokens = _largest(log_probs, min(width, log_probs.size(1) - FIRST_ALLOWED))
    _check(values[:, 0])
    return values, tokens


def drawn(
    logits: Tensor, draws: Tensor, *, temperature: float, top_k: int | None, top_p: float | None
) -> tuple[Tensor, Tensor]:
    """One token after each hypothesis: its log-probability under the model (R,), and its id (R,).

    logits (R, V); draws (R,) from 0 to below 1, float64. It is drawn from softmax(logits / temperature) of the
    top_k likeliest tokens, and of these from the fewest that together have top_p of the probability (Holtzman et
    al. 2020). Probabilities are added up in the order of the vocabulary, not of their size: so a rounding error
    matters only to a draw that is as near to a border. Raises ValueError where a row has no number.
    """
    log_probs = logits.double().log_softmax(1)
    _check(log_probs[:, FIRST_ALLOWED:].amax(1))
    scores = log_probs[:, FIRST_ALLOWED:] / temperature
    if top_k is not None and top_k < scores.size(1):
        least = scores.topk(top_k, dim=1).values[:, -1:]
        scores = scores.masked_fill(scores < least, -math.inf)
    probs = scores.softmax(1)
    if top_p is not None and top_p < 1.0:
        ordered = probs.sort(dim=1, descending=True).values
        num_kept = (ordered.cumsum(1) - ordered < top_p).sum(1, keepdim=True)
        probs = probs.masked_fill(probs < ordered.gather(1, num_kept - 1), 0.0)
    borders = probs.cumsum(1)
    tokens = torch.searchsorted(borders, draws.unsqueeze(1) * borders[:, -1:], right=True) + FIRST_ALLOWED
    return log_probs.gather(1, tokens).squeeze(1), tokens.squeeze(1)


def _largest(x: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """`x.topk(width, dim=1)`, three times as fast on a CPU for a long row (benchmarks/README.md).

    The width largest values of a row lie in the width blocks of largest maximum, so only those are searched.
    """
    num_blocks = x.size(1) // BLOCK_TOKENS
    if num_blocks <= width:
        return x.topk(width, dim=1)
    whole, rest = x.split((num_blocks * BLOCK_TOKENS, x.size(1) % BLOCK_TOKENS), dim=1)
    blocks = whole.unflatten(1, (num_blocks, BLOCK_TOKENS))
    chosen = blocks.amax(2).topk(width, dim=1).indices  # (R, K)
    searched = blocks.gather(1, chosen.unsqueeze(2).expand(-1, -1, BLOCK_TOKENS)).flatten(1)
    values, place = torch.cat((searched, rest), dim=1).topk(width, dim=1)
    block = torch.cat((chosen, torch.full_like(chosen[:, :1], num_blocks)), dim=1)
    return values, block.gather(1, place // BLOCK_TOKENS) * BLOCK_TOKENS + place % BLOCK_TOKENS


def _check(log_probs: Tensor) -> None:
    """log_probs (R,): of each hypothesis the best next token's."""
    if not (log_probs > -math.inf).all():
        raise ValueError(
            "the model gives no token a probability (NaN or infinite logits); its weights are damaged: train it again"
        )
