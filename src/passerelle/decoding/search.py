"""Greedy and beam search, one implementation over `nn.model.Seq2Seq`.

The beam of a sentence has `beam_size` places. At each step the best continuations of its live hypotheses, by
log-probability, take the free places. One that ends there (EOS, or the sentence's maximum length) keeps its
place and leaves the batch, and the sentence is done when all places are kept. So beam 1 is greedy search, and
what has ended costs nothing. A sentence is also done as soon as no live hypothesis can enter its `num_best`
best. That is exact under each length rule: log-probabilities only fall, and none is divided by more than the
longest length is.

Shapes: N sentences, R live hypotheses of all of them, T tokens so far, W beam width, K continuations of one
hypothesis, C continuations that took a place, V vocabulary.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from passerelle.data.special import BOS, EOS
from passerelle.decoding.hypothesis import Hypothesis, LengthRule, divisor
from passerelle.decoding.next_tokens import likeliest
from passerelle.nn.model import Seq2Seq


@dataclass(frozen=True)
class _Live:
    """Hypotheses that go on, grouped by sentence in order, the likeliest of a sentence first."""

    sentence: Tensor
    """(R,)"""
    log_prob: Tensor
    """(R,), float32."""
    tokens: Tensor
    """(R, T), the tokens so far, without BOS."""


@dataclass(frozen=True)
class _Chosen:
    """Continuations that took a place, in the order of `_Live`."""

    sentence: Tensor
    """(C,)"""
    parent: Tensor
    """(C,), rows of `_Live`."""
    token: Tensor
    """(C,)"""
    log_prob: Tensor
    """(C,)"""

    def rows(self, index: Tensor) -> "_Chosen":
        return _Chosen(self.sentence[index], self.parent[index], self.token[index], self.log_prob[index])


@torch.inference_mode()
def search(
    model: Seq2Seq,
    source: Tensor,
    source_lengths: Tensor,
    *,
    beam_size: int,
    length_penalty: float,
    max_lengths: Tensor,
    length_rule: LengthRule = "plain",
    num_best: int = 1,
) -> list[list[Hypothesis]]:
    """For each sentence its num_best best hypotheses (fewer where beam_size or the model allows fewer).

    source (N, S), source_lengths (N,) and max_lengths (N,): the most tokens of a translation, EOS included.
    Finished hypotheses come first, then by score, highest first; they are distinct. The result of a sentence
    depends neither on the others of the batch nor on padding, and its best not on num_best.
    Raises ValueError where the model's probabilities are not numbers.
    """
    num_sentences = source.size(0)
    memory = model.encode(source, source_lengths)
    state = model.start(memory)
    live = _Live(
        torch.arange(num_sentences, device=source.device),
        torch.zeros(num_sentences, device=source.device),
        source.new_empty(num_sentences, 0),
    )
    last = torch.full_like(source[:, :1], BOS)
    places = torch.full_like(max_lengths, beam_size)
    ended = _Ended(num_best, length_penalty, length_rule, max_lengths)
    length = 0
    while live.sentence.numel():
        length += 1
        logits, state = model.decode(last, memory, state)
        chosen = _choose(logits[:, -1], live, places, beam_size)
        is_ended = (chosen.token == EOS) | (max_lengths[chosen.sentence] == length)
        if is_ended.any():
            leaving = chosen.rows(is_ended)
            ended.add(leaving, live.tokens)
            places = places - leaving.sentence.bincount(minlength=num_sentences)
            chosen = chosen.rows(~is_ended)
            chosen = chosen.rows(ended.can_be_beaten_by(chosen))
        memory, state = _follow(memory, state, live, chosen)
        last = chosen.token.unsqueeze(1)
        tokens = torch.cat((live.tokens[chosen.parent], last), dim=1)
        live = _Live(chosen.sentence, chosen.log_prob, tokens)
    return ended.best()


def _choose(logits: Tensor, live: _Live, places: Tensor, beam_size: int) -> _Chosen:
    """The likeliest continuations of each sentence that has live hypotheses, as many as its free places.

    logits (R, V), places (N,).
    """
    num_sentences = places.size(0)
    values, tokens = likeliest(logits, beam_size)  # (R, K)
    width = values.size(1)
    counts = live.sentence.bincount(minlength=num_sentences)
    first_rows = counts.cumsum(0) - counts  # (N,)
    slots = torch.arange(live.sentence.size(0), device=logits.device) - first_rows[live.sentence]
    grid = values.new_full((num_sentences, beam_size, width), -math.inf)
    grid[live.sentence, slots] = values + live.log_prob.unsqueeze(1)
    best, place = grid.flatten(1).topk(beam_size, dim=1)  # (N, W)
    is_kept = (torch.arange(beam_size, device=logits.device) < places.unsqueeze(1)) & (best > -math.inf)
    sentence, rank = is_kept.nonzero(as_tuple=True)
    place = place[sentence, rank]  # (C,), of W * K
    parent = first_rows[sentence] + place // width
    return _Chosen(sentence, parent, tokens[parent, place % width], best[sentence, rank])


def _follow(memory: Any, state: Any, live: _Live, chosen: _Chosen) -> tuple[Any, Any]:
    """Memory and state with the rows of `chosen`, copied only where they differ."""
    if not torch.equal(chosen.sentence, live.sentence):
        memory = memory.reorder(chosen.parent)
    rows = torch.arange(live.sentence.size(0), device=chosen.parent.device)
    if not torch.equal(chosen.parent, rows):
        state = state.reorder(chosen.parent)
    return memory, state


class _Ended:
    """The hypotheses that have ended, by sentence."""

    def __init__(
        self, num_best: int, length_penalty: float, length_rule: LengthRule, max_lengths: Tensor
    ) -> None:
        self.num_best = num_best
        self.length_penalty = length_penalty
        self.length_rule: LengthRule = length_rule
        self.hypotheses: list[list[Hypothesis]] = [[] for _ in range(max_lengths.size(0))]
        self.most = divisor(max_lengths.float(), length_penalty, length_rule)
        """(N,), what the log-probability of the longest possible hypothesis is divided by."""
        self.to_beat = torch.full_like(self.most, -math.inf)
        """(N,), score of the num_best-th best finished hypothesis."""

    def add(self, leaving: _Chosen, tokens: Tensor) -> None:
        """Take up hypotheses that end with their token; tokens (R, T) are those of their parents."""
        ids = torch.cat((tokens[leaving.parent], leaving.token.unsqueeze(1)), dim=1).tolist()
        divided_by = divisor(float(tokens.size(1) + 1), self.length_penalty, self.length_rule)
        log_probs = leaving.log_prob.tolist()
        for index, row, log_prob in zip(leaving.sentence.tolist(), ids, log_probs, strict=True):
            hypothesis = Hypothesis(tuple(row), log_prob, log_prob / divided_by, row[-1] == EOS)
            self.hypotheses[index].append(hypothesis)
            finished = sorted((h.score for h in self.hypotheses[index] if h.is_finished), reverse=True)
            if len(finished) >= self.num_best:
                self.to_beat[index] = finished[self.num_best - 1]

    def can_be_beaten_by(self, chosen: _Chosen) -> Tensor:
        """(C,), True for all hypotheses of a sentence where one of them can still enter the num_best best."""
        has_chance = chosen.log_prob / self.most[chosen.sentence] > self.to_beat[chosen.sentence]
        is_open = torch.zeros_like(self.to_beat, dtype=torch.bool)
        is_open[chosen.sentence[has_chance]] = True
        return is_open[chosen.sentence]

    def best(self) -> list[list[Hypothesis]]:
        """The num_best best of each sentence, finished ones first."""
        return [
            sorted(hypotheses, key=lambda h: (h.is_finished, h.score), reverse=True)[: self.num_best]
            for hypotheses in self.hypotheses
        ]
