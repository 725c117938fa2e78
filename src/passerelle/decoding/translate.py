"""Lines to translations: cleaning, cutting what is too long, batches of like length, decoding, typography."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from passerelle.config import DecodingConfig
from passerelle.corpus.clean import clean_text
from passerelle.corpus.typography import restore_typography
from passerelle.data.special import EOS, PAD
from passerelle.decoding.hypothesis import Hypothesis
from passerelle.decoding.long_lines import sentences as sentences_of
from passerelle.decoding.long_lines import split_text
from passerelle.decoding.sampling import sample, uniform_draws
from passerelle.decoding.search import search
from passerelle.model_folder import LoadedModel

Progress = Callable[[int], object]


@dataclass(frozen=True)
class Translation:
    """What became of one source line."""

    source: str
    """As it was given."""
    text: str
    """The translation as it is printed, with the no-break spaces of its language."""
    raw: str
    """The translation in the uniform form of training (`clean_text`)."""
    ids: tuple[int, ...]
    """Its tokens, EOS last where it is finished; none for an empty source. Those of several parts in a row."""
    log_prob: float
    """Natural log-probability of the tokens."""
    score: float
    """What the search ranks by (`hypothesis.divisor`); the sum over the parts."""
    is_finished: bool
    """False where the maximum length cut it, or a part of it."""
    source_ids: tuple[int, ...] = ()
    """The tokens that the model read, EOS last; those of several parts in a row."""
    num_parts: int = 1
    """How many pieces the line was translated in: more than one where it is too long, none for an empty source."""
    is_cut: bool = False
    """True where only the beginning of the source was translated."""


@dataclass(frozen=True)
class _Source:
    """What the model reads of one line."""

    parts: tuple[tuple[int, ...], ...]
    """Token ids of each, EOS last; none for a line without text."""
    is_cut: bool


def translate(
    loaded: LoadedModel,
    sentences: Sequence[str],
    config: DecodingConfig,
    progress: Progress | None = None,
) -> list[Translation]:
    """One translation for each sentence, in their order; a sentence without text has an empty one.

    Sentences are decoded together with others of like length; that changes the speed only. After each batch
    progress is called with the number of sentences done by it.
    """
    return [best for best, *_ in translate_n_best(loaded, sentences, config, 1, progress)]


def translate_n_best(
    loaded: LoadedModel,
    sentences: Sequence[str],
    config: DecodingConfig,
    num_best: int = 1,
    progress: Progress | None = None,
) -> list[list[Translation]]:
    """The num_best best translations of each sentence, best first (where config says so, as many samples).

    They differ in their tokens; now and then two have the same text. There are fewer where the model allows fewer,
    and a sentence without text has one, which is empty. The first is that of `translate`.
    Raises ValueError where the beam is narrower than num_best.
    """
    if config.method == "beam" and num_best > config.beam_size:
        raise ValueError(
            f"{num_best} translations of each sentence are asked for, but decoding.beam_size is "
            f"{config.beam_size}: raise it, or ask for no more than that"
        )
    sources = _read_sources(loaded, sentences, config)
    parts = [(index, part) for index, source in enumerate(sources) for part in source.parts]
    num_open = [len(source.parts) for source in sources]
    if progress:
        progress(num_open.count(0))
    found: list[list[Hypothesis]] = [[] for _ in parts]
    num_together = num_best if config.method == "sample" else config.beam_size
    for positions in batches([len(part) for _, part in parts], config.batch_tokens // num_together):
        hypotheses = _decode(loaded, [parts[position][1] for position in positions], config, num_best)
        for position, of_part in zip(positions, hypotheses, strict=True):
            found[position] = of_part
            num_open[parts[position][0]] -= 1
        if progress:
            indices = {parts[position][0] for position in positions}
            progress(sum(num_open[index] == 0 for index in indices))
    rest = iter(found)
    return [
        [
            _translation(loaded, sentence, source, joined)
            for joined in _joined([next(rest) for _ in source.parts], config, num_best)
        ]
        for sentence, source in zip(sentences, sources, strict=True)
    ]


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


def _read_sources(loaded: LoadedModel, sentences: Sequence[str], config: DecodingConfig) -> list[_Source]:
    """What the model reads of each line: parts of at most max_source_tokens, not counting EOS."""
    most, encode = config.max_source_tokens, loaded.tokenizer.encode

    def fits(piece: str) -> bool:
        return len(encode(piece)) <= most and not (config.split_sentences and len(sentences_of(piece)) > 1)

    def read(line: str, ids: Sequence[int]) -> _Source:
        if not ids:
            return _Source((), is_cut=False)
        is_long = len(ids) > most + 1
        if is_long and config.long_lines == "cut":
            return _Source(((*ids[:most], EOS),), is_cut=True)
        if not is_long and not config.split_sentences:
            return _Source((tuple(ids),), is_cut=False)
        pieces = map(encode, split_text(clean_text(line, loaded.languages.source), fits))
        return _Source(tuple((*piece, EOS) for piece in pieces if piece), is_cut=False)

    encoded = encode_sources(loaded, sentences)
    return [read(line, ids) for line, ids in zip(sentences, encoded, strict=True)]


def _decode(
    loaded: LoadedModel, sources: Sequence[tuple[int, ...]], config: DecodingConfig, num_best: int
) -> list[list[Hypothesis]]:
    """The best num_best hypotheses for each source, or as many samples."""
    source, source_lengths = pad_sources(sources, loaded.model.output.weight.device)
    num_tokens = source_lengths - 1  # without EOS
    max_lengths = ((num_tokens * config.max_length_ratio).long() + 10).clamp(max=config.max_length)
    if config.method == "beam":
        return search(
            loaded.model,
            source,
            source_lengths,
            beam_size=config.beam_size,
            length_penalty=config.length_penalty,
            length_rule=config.length_rule,
            max_lengths=max_lengths,
            num_best=num_best,
        )
    longest = int(max_lengths.max())
    draws = [uniform_draws(sources, longest, seed=config.seed, number=number) for number in range(num_best)]
    samples = sample(
        loaded.model,
        source.repeat(num_best, 1),
        source_lengths.repeat(num_best),
        draws=torch.cat(draws).to(source.device),
        temperature=config.temperature,
        top_k=config.top_k,
        top_p=config.top_p,
        length_penalty=config.length_penalty,
        length_rule=config.length_rule,
        max_lengths=max_lengths.repeat(num_best),
    )
    return [samples[index :: len(sources)] for index in range(len(sources))]


def _joined(
    parts: Sequence[Sequence[Hypothesis]], config: DecodingConfig, num_best: int
) -> list[tuple[Hypothesis, ...]]:
    """From the hypotheses of each part those of the whole: the num_best best by finished parts, then by score.

    Since both are sums over the parts, a best whole has a best beginning.
    """
    if parts and (config.method == "sample" or num_best == 1):
        return list(zip(*parts, strict=True))
    wholes: list[tuple[Hypothesis, ...]] = [()]
    for hypotheses in parts:
        longer = [(*whole, hypothesis) for whole in wholes for hypothesis in hypotheses]
        wholes = sorted(longer, key=_rank, reverse=True)[:num_best]
    return wholes


def _rank(whole: Sequence[Hypothesis]) -> tuple[int, float]:
    return sum(part.is_finished for part in whole), sum(part.score for part in whole)


def _translation(
    loaded: LoadedModel, sentence: str, source: _Source, parts: Sequence[Hypothesis]
) -> Translation:
    language = loaded.languages.target
    raw = clean_text(" ".join(loaded.tokenizer.decode(part.ids) for part in parts), language)
    return Translation(
        source=sentence,
        text=restore_typography(raw, language),
        raw=raw,
        ids=tuple(token for part in parts for token in part.ids),
        log_prob=sum((part.log_prob for part in parts), 0.0),
        score=sum((part.score for part in parts), 0.0),
        is_finished=all(part.is_finished for part in parts),
        source_ids=tuple(token for part in source.parts for token in part),
        num_parts=len(parts),
        is_cut=source.is_cut,
    )
