"""The table of knobs: `params.yaml` as frozen, strict, typed values.

Every knob that changes a result stands in `params.yaml`; this file says what each may be, and `params_file`
reads it. A stage receives only the sections that its own parameter class names, and `dvc.yaml` lists exactly
those for it.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    model_validator,
)

LEARNED_POSITIONS = 512
"""Longest sequence of a model whose positions are learned."""

LARGEST = 2**63 - 1
"""Largest whole number: NumPy, Arrow and torch hold no larger one."""


def _is_hash(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ValueError("input should be 64 hexadecimal digits in small letters")
    return text


def _is_language(text: str) -> str:
    if not re.fullmatch("[a-z]{2,3}", text):
        raise ValueError("input should be an ISO 639 code such as en or fra")
    return text


_SECRETS = re.compile(
    r"://[^/?#]*[^/?#:][^/?#]*@|://[^/?#:]*:(?!\d+/)[^?#@]*[^?#@:][^?#@]*@"  # a login
    r"|[?&;][^=&]*(token|key|secret|passw|pwd|auth|sig|cred)[^=&]*=[^&#]",
    re.IGNORECASE,
)


def _is_address(text: str) -> str:
    if _SECRETS.search(re.sub(r"\$\{\w+\}", "", text)):
        raise ValueError(
            "a password or token would be copied into dvc.lock, and so into git; write ${NAME} in its place, as in "
            "https://${CORPUS_USER}:${CORPUS_PASSWORD}@host/file.zip, and set that environment variable"
        )
    return text


PositiveInt = Annotated[int, Field(gt=0, le=LARGEST)]
NonNegativeInt = Annotated[int, Field(ge=0, le=LARGEST)]
Width = Annotated[int, Field(gt=0, le=1_000_000)]
Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
Hash = Annotated[str, AfterValidator(_is_hash)]
Language = Annotated[str, AfterValidator(_is_language)]


class Section(BaseModel):
    """A section of `params.yaml`: unknown keys and wrong types are faults, values never change."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class CorpusConfig(Section):
    """Where the raw sentence pairs come from (stage `fetch`)."""

    name: str
    """What the corpus is called in reports and runs."""
    origin: Literal["file", "phrasebook"]
    """`file`: looked for in `archive_variable`, `path`, `urls`; `phrasebook`: generated, synthetic."""
    archive_variable: str | None = None
    """Environment variable that, where set, names a local archive or text file; looked at first."""
    path: str | None = None
    """Local archive or text file, relative to the folder of `params.yaml`; looked at second."""
    urls: list[Annotated[str, AfterValidator(_is_address)]] = []
    """Addresses tried in order, last; `${NAME}` stands for an environment variable, a password say."""
    sha256: Hash | None = None
    """Expected hash of the sentence-pair text itself (not of its archive); null accepts any."""
    max_bytes: PositiveInt = 2_000_000_000
    """Largest unpacked text that is accepted."""
    attribution: str
    """Who made the corpus and under which licence; kept beside the data."""

    @model_validator(mode="after")
    def _file_has_a_place(self) -> Self:
        if self.origin == "file" and not (self.archive_variable or self.path or self.urls):
            raise ValueError("origin is file, so archive_variable, path or urls must say where it is")
        return self


class LanguagesConfig(Section):
    """Languages of the two sides; they choose the typography rules (French has its own)."""

    source: Language = "en"
    """ISO 639 code of the source language."""
    target: Language = "fr"
    """ISO 639 code of the target language."""


class CleaningConfig(Section):
    """Which sentence pairs are kept (stage `prepare`). A rejected pair keeps its reason."""

    max_words: PositiveInt = 80
    """Longest sentence kept, in words, on either side."""
    max_length_ratio: Annotated[float, Field(gt=1.0)] = 5.0
    """Most words on one side for one on the other; only for pairs where a side has over 10 words."""
    max_line_bytes: PositiveInt = 100_000
    """A longer line is not a sentence pair, and rejected."""
    lowercase: bool = False
    """Write all text in lower case, as the chapter does."""
    max_pairs: PositiveInt | None = None
    """Read only this many lines from the start of the corpus; null reads all."""


class SplitConfig(Section):
    """How groups of pairs that share a sentence are dealt out (stage `prepare`)."""

    seed: NonNegativeInt = 0
    """Another seed gives another, equally leak-free split."""
    valid_sentences: PositiveInt = 2000
    """About this many different source sentences for validation."""
    test_sentences: PositiveInt = 2000
    """About this many different source sentences for the test."""
    train_lines: PositiveInt | None = None
    """The corpus's first so many lines are the training set, and what shares no sentence with them the rest;
    null deals out all lines by hash."""


class TokenizerConfig(Section):
    """Vocabulary of both languages together, learnt from the training text (stage `tokenizer`)."""

    kind: Literal["unigram", "bpe", "word"] = "unigram"
    """SentencePiece's sub-words, or whole words in lower case, as in the chapter."""
    vocab_size: Annotated[int, Field(ge=300, le=1_000_000)] = 8000
    """Pieces in the vocabulary; PAD, UNK, BOS, EOS and 256 byte pieces are among them. Words: the most kept."""
    min_frequency: PositiveInt = 2
    """Words alone: a word that neither language has so often is unknown."""
    max_sentences: PositiveInt = 1_000_000
    """Sample this many sentences at most for learning the vocabulary (bounds memory)."""


class ShardsConfig(Section):
    """How token ids are written (stage `shards`)."""

    max_tokens: Annotated[int, Field(ge=4, le=LARGEST)] = 128
    """Longest sentence in tokens; a longer one is cut there, and counted."""
    shard_bytes: Annotated[int, Field(ge=1, le=2_000_000_000)] = 64_000_000
    """Size of one Arrow file, about; its offsets have 32 bits."""


class ModelConfig(Section):
    """The network: the Transformer (Vaswani et al. 2017) or the recurrent one of Bahdanau et al. (2015)."""

    name: Literal["transformer", "bahdanau"] = "transformer"
    """The architecture."""
    d_model: Width = 192
    """Width: of the residual stream, or of embeddings and hidden states."""
    num_layers: Annotated[int, Field(gt=0, le=1000)] = 3
    """Blocks or recurrent layers of the encoder, and as many of the decoder."""
    dropout: Fraction = 0.1
    """Share of activations dropped in training."""
    share_embeddings: bool = True
    """One matrix for source embedding, target embedding and output layer, or three."""
    num_heads: Width = 4
    """Transformer alone: attention heads; divides d_model."""
    d_ff: Width = 768
    """Transformer alone: width of the feed-forward layers."""
    norm: Literal["pre", "post"] = "pre"
    """Transformer alone: layer norm before each sub-layer (trains steadily) or after it (the chapter's own)."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """Transformer alone: how a token's position is told; learned ones end at 512 tokens."""
    attention: Literal["dot", "additive"] = "dot"
    """Transformer alone: how a query is compared with a key."""
    cell: Literal["gru", "lstm"] = "gru"
    """Bahdanau alone: the recurrent unit."""
    alignment: Literal["additive", "dot"] = "additive"
    """Bahdanau alone: how the decoder's state is compared with the encoder's states."""

    @model_validator(mode="after")
    def _widths_fit(self) -> Self:
        if self.name == "transformer" and self.d_model % self.num_heads:
            raise ValueError(f"num_heads must divide d_model={self.d_model}, but is {self.num_heads}")
        if self.name == "transformer" and self.d_model % 2:
            raise ValueError(f"d_model must be even (sines and cosines come in pairs), but is {self.d_model}")
        return self


class TrainingConfig(Section):
    """Optimisation (stage `train`). The number of workers is not here: it does not change the result."""

    seed: NonNegativeInt = 0
    """Initial weights, order of the data, dropout."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Arithmetic of the forward and backward pass; `auto` is bf16 where the hardware multiplies it."""
    micro_batch_tokens: Annotated[int, Field(ge=64, le=LARGEST)] = 1024
    """Padded tokens of one micro-batch, on the longer side; bounds memory."""
    micro_batch_sentences: PositiveInt | None = None
    """Most sentence pairs in a micro-batch; null: as many as micro_batch_tokens allows."""
    micro_batches_per_step: PositiveInt = 2
    """Micro-batches summed into one optimiser step; they are dealt out over the workers."""
    max_steps: PositiveInt = 6000
    """Optimiser steps in all."""
    optimizer: Literal["muon", "adam"] = "muon"
    """What moves the matrices within the network; embeddings, output layer and vectors are always Adam's."""
    learning_rate: PositiveFloat = 6e-3
    """Highest learning rate, reached at the end of the warm-up."""
    muon_rate: PositiveFloat = 1.7
    """Muon's rate, as a multiple of the learning rate."""
    warmup_steps: NonNegativeInt = 400
    """Steps of linear rise from zero."""
    schedule: Literal["constant", "inverse_sqrt", "cosine", "linear"] = "linear"
    """Decay after the warm-up; cosine and linear reach zero at max_steps."""
    beta1: Fraction = 0.9
    """Adam's decay of the gradient mean."""
    beta2: Fraction = 0.98
    """Adam's decay of the squared gradient's mean."""
    weight_decay: NonNegativeFloat = 0.0
    """AdamW's decoupled weight decay, on matrices only."""
    clip_norm: PositiveFloat | None = 1.0
    """Longest gradient allowed; null does not clip."""
    label_smoothing: Fraction = 0.1
    """Share of the target probability spread over the vocabulary."""
    validate_every: PositiveInt = 300
    """Steps between validations; each also writes a checkpoint."""
    bleu_sentences: NonNegativeInt = 500
    """Validation sentences translated at each validation, by greedy search; 0 measures no BLEU."""
    max_skipped_steps: PositiveInt = 10
    """A step whose loss or gradient is not finite is skipped; after so many of them in a row training stops."""
    patience: PositiveInt | None = None
    """Stop after this many validations without a better validation loss; null runs to max_steps."""
    average_checkpoints: PositiveInt = 1
    """How many checkpoints are averaged into the final weights; 1 takes one."""
    average_of: Literal["last", "best"] = "last"
    """Average the last checkpoints, or those of lowest validation loss."""

    @model_validator(mode="after")
    def _steps_fit(self) -> Self:
        if self.warmup_steps >= self.max_steps:
            raise ValueError(
                f"warmup_steps must be below max_steps={self.max_steps}, but is {self.warmup_steps}"
            )
        if self.validate_every > self.max_steps:
            raise ValueError(
                f"validate_every must be at most max_steps={self.max_steps}, but is {self.validate_every}"
            )
        return self


class DecodingConfig(Section):
    """How translations are searched for (stage `evaluate`, `passerelle translate`)."""

    method: Literal["beam", "sample"] = "beam"
    """The likeliest translations, or translations drawn at random."""
    beam_size: PositiveInt = 5
    """Hypotheses kept at each step; 1 is greedy search."""
    length_rule: Literal["plain", "wu"] = "plain"
    """What a hypothesis's log-probability is divided by: length ** length_penalty, or, after Wu et al. 2016
    (eq. 14), ((5 + length) / 6) ** length_penalty."""
    length_penalty: NonNegativeFloat = 0.6
    """The exponent; a larger one prefers longer translations, and 0 the likeliest."""
    temperature: PositiveFloat = 1.0
    """Of sampling: logits are divided by it; below 1 likely tokens become likelier."""
    top_k: PositiveInt | None = None
    """Of sampling: only so many of the likeliest tokens; null: all."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Of sampling: only the likeliest tokens whose probabilities just reach this sum; null: all."""
    seed: NonNegativeInt = 0
    """Of sampling: another seed, other translations."""
    max_length_ratio: PositiveFloat = 2.0
    """A translation has at most this many times the source's tokens, plus 10."""
    max_length: PositiveInt = 200
    """And never more tokens than this."""
    max_source_tokens: Annotated[int, Field(ge=8, le=LARGEST)] = 128
    """A longer source is translated in parts, or cut."""
    long_lines: Literal["split", "cut"] = "split"
    """What becomes of a longer source: split into sentences, or cut with a warning."""
    split_sentences: bool = False
    """Whether a line's sentences are always translated one by one: for a model that learnt single sentences alone."""
    batch_tokens: PositiveInt = 8192
    """Padded source tokens times beam decoded together; changes memory and speed only."""


class EvaluationConfig(Section):
    """Scores and attention pictures (stage `evaluate`)."""

    bootstrap_samples: Annotated[int, Field(ge=100, le=LARGEST)] = 1000
    """Resamplings behind each 95 % confidence interval."""
    seed: NonNegativeInt = 12345
    """Seed of the resampling."""
    attention_sentences: list[str] = []
    """Source sentences whose attention is dumped and drawn."""
    attention_indices: list[NonNegativeInt] = []
    """And test sentences, by their number from 0."""
    attention_worst: NonNegativeInt = 0
    """And so many test sentences of the lowest score."""
    attention_dump: bool = False
    """Whether the attention of the whole test set is written too, as Arrow."""
    report_sentences: PositiveInt = 20
    """Translations that the report shows of the best, the worst, and drawn at random, each."""


class Params(Section):
    """The whole of `params.yaml`."""

    root: str
    """Where the project's code is, from the folder of this file; `dvc.yaml` uses it."""
    corpus: CorpusConfig
    languages: LanguagesConfig
    cleaning: CleaningConfig
    split: SplitConfig
    tokenizer: TokenizerConfig
    shards: ShardsConfig
    model: ModelConfig
    training: TrainingConfig
    decoding: DecodingConfig
    evaluation: EvaluationConfig

    @model_validator(mode="after")
    def _case_is_kept(self) -> Self:
        if self.cleaning.lowercase and self.tokenizer.kind != "word":
            raise ValueError(
                f"cleaning.lowercase is true, but only tokenizer.kind=word reads a user's sentences in lower case "
                f"too, and it is {self.tokenizer.kind}: change one of them"
            )
        return self

    @model_validator(mode="after")
    def _positions_suffice(self) -> Self:
        decoding = self.decoding
        longest = max(self.shards.max_tokens, decoding.max_source_tokens, decoding.max_length - 1) + 1
        if self.model.positions == "learned" and longest > LEARNED_POSITIONS:
            raise ValueError(
                f"model.positions is learned, which ends at {LEARNED_POSITIONS} tokens, but shards.max_tokens="
                f"{self.shards.max_tokens}, decoding.max_source_tokens={decoding.max_source_tokens} and "
                f"decoding.max_length={decoding.max_length}: lower them"
            )
        return self


class FetchParams(Section):
    """What stage `fetch` receives."""

    corpus: CorpusConfig


class PrepareParams(Section):
    """What stage `prepare` receives."""

    languages: LanguagesConfig
    cleaning: CleaningConfig
    split: SplitConfig


class TokenizerParams(Section):
    """What stage `tokenizer` receives."""

    tokenizer: TokenizerConfig


class ShardsParams(Section):
    """What stage `shards` receives."""

    shards: ShardsConfig


class TrainParams(Section):
    """What stage `train` receives."""

    languages: LanguagesConfig
    model: ModelConfig
    training: TrainingConfig


class EvaluateParams(Section):
    """What stage `evaluate` receives."""

    decoding: DecodingConfig
    evaluation: EvaluationConfig


VARIANT_SECTIONS = ("model", "training", "decoding", "evaluation")
"""What a variant may change; the stages before training run once for all variants."""
