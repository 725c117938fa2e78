"""Sentences to translations: cleaning, batches of like length, search, and the target's typography."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from passerelle.config import DecodingConfig
from passerelle.corpus.clean import clean_text
from passerelle.corpus.typography import restore_typography
from passerelle.data.special import EOS, PAD
from passerelle.decoding.search import Hypothesis, search
from passerelle.model_folder import LoadedModel


@dataclass(frozen=True)
class Translation:
    """What became of one source sentence."""

    source: str
    """As it was given."""
    text: str
    """The translation as it is printed, with the no-break spaces of its language."""
    raw: str
    """The translation in the uniform form of training (`clean_text`)."""
    ids: tuple[int, ...]
    """Its tokens, EOS last where it is finished; none for an empty source."""
    log_prob: float
    """Natural log-probability of the tokens."""
    score: float
    """What the search ranks by: log_prob / length ** length_penalty."""
    is_finished: bool
    """False where the maximum length cut it."""


def translate(
    loaded: LoadedModel,
    sentences: Sequence[str],
    config: DecodingConfig,
    progress: Callable[[int], object] | None = None,
) -> list[Translation]:
    """One translation for each sentence, in their order; a sentence without text has an empty one.

    Sentences are decoded together with others of like length; that changes the speed only. After each batch
    progress is called with the number of sentences done by it.
    """
    sources = encode_sources(loaded, sentences)
    translations = [Translation(sentence, "", "", (), 0.0, 0.0, True) for sentence in sentences]
    filled = [index for index, source in enumerate(sources) if source]
    if progress:
        progress(len(sentences) - len(filled))
    lengths = [len(sources[index]) for index in filled]
    for positions in batches(lengths, config.batch_tokens // config.beam_size):
        indices = [filled[position] for position in positions]
        hypotheses = _decode(loaded, [sources[index] for index in indices], config)
        for index, hypothesis in zip(indices, hypotheses, strict=True):
            translations[index] = _translation(loaded, sentences[index], hypothesis)
        if progress:
            progress(len(indices))
    return translations


def encode_sources(loaded: LoadedModel, sentences: Sequence[str]) -> list[list[int]]:
    """Token ids of each sentence, cleaned, EOS last; none for a sentence without text."""
    cleaned = [clean_text(sentence, loaded.languages.source) for sentence in sentences]
    return [[*ids, EOS] if ids else [] for ids in loaded.tokenizer.encode_batch(cleaned)]


def pad_sources(sources: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Token ids of N sentences as source (N, S), and source_lengths (N,)."""
    rows = [torch.tensor(source) for source in sources]
    source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    return source.to(device), torch.tensor([len(row) for row in rows], device=device)


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Every position once, longest first, as many together as fit budget padded tokens, but at least one."""
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    start = 0
    while start < len(order):
        size = max(1, budget // lengths[order[start]])
        yield order[start : start + size]
        start += size


def _decode(loaded: LoadedModel, sources: list[list[int]], config: DecodingConfig) -> list[Hypothesis]:
    """The best hypothesis for each source."""
    source, source_lengths = pad_sources(sources, loaded.model.output.weight.device)
    num_tokens = source_lengths - 1  # without EOS
    max_lengths = ((num_tokens * config.max_length_ratio).long() + 10).clamp(max=config.max_length)
    found = search(
        loaded.model,
        source,
        source_lengths,
        beam_size=config.beam_size,
        length_penalty=config.length_penalty,
        max_lengths=max_lengths,
    )
    return [hypotheses[0] for hypotheses in found]


def _translation(loaded: LoadedModel, sentence: str, hypothesis: Hypothesis) -> Translation:
    language = loaded.languages.target
    raw = clean_text(loaded.tokenizer.decode(hypothesis.ids), language)
    return Translation(
        source=sentence,
        text=restore_typography(raw, language),
        raw=raw,
        ids=hypothesis.ids,
        log_prob=hypothesis.log_prob,
        score=hypothesis.score,
        is_finished=hypothesis.is_finished,
    )
