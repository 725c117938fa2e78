"""Sub-word vocabulary of both languages, by SentencePiece: learning it, and text to token ids and back.

SentencePiece with the identity normalisation, full character coverage and byte fallback: what it is given
is what it gives back, and no text needs UNK. Text is cleaned before, visibly, in `passerelle.corpus.clean`.

SentencePiece writes a space as U+2581 (a low line). Where the text itself holds that character, it is
encoded as its three byte pieces here, so that it comes back as itself and not as a space.
"""

import hashlib
import io
import logging
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sentencepiece as spm

from passerelle.config import TokenizerConfig
from passerelle.data.prepared import sampled_sentences
from passerelle.data.special import BOS, EOS, PAD, UNK

SPACE_MARK = "\u2581"

# Counts are summed thread by thread, so another number of threads gives other rounding and a slightly
# other vocabulary (8 of 8,000 pieces on fra-eng): the number is fixed, whatever the machine has.
NUM_THREADS = 2
# SentencePiece skips longer sentences without a word, at 4,192 bytes unless told otherwise.
MAX_SENTENCE_BYTES = 1 << 30
# Characters with a meaning inside SentencePiece's training (a sentence with U+2585 would be skipped) and
# control characters: spaces while learning, so that none becomes part of a piece.
RESERVED = re.compile("[\\x00-\\x1f\u2581\u2585]")

logger = logging.getLogger(__name__)


class SubwordTokenizer:
    """Text to token ids and back, by a SentencePiece model.

    Decoding an encoding gives the text back, whatever characters and spaces it has.
    """

    def __init__(self, model: bytes) -> None:
        """Raises ValueError where `model` is no SentencePiece model with our special ids and byte pieces."""
        self._processor = processor = spm.SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(model)
            self.pieces(range(processor.vocab_size()))
        except (RuntimeError, UnicodeDecodeError):  # the latter where a piece, or the message, is no text
            raise ValueError("not a SentencePiece model") from None
        found = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if found != (PAD, UNK, BOS, EOS):
            raise ValueError(f"PAD, UNK, BOS, EOS must be {PAD}, {UNK}, {BOS}, {EOS}, but are {found}")
        byte_ids = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        if UNK in byte_ids:
            raise ValueError("the model has no byte pieces; it must be trained with byte_fallback")
        self._space_mark_ids = [byte_ids[byte] for byte in SPACE_MARK.encode()]
        self.vocab_size: int = processor.vocab_size()
        """Number of token ids."""
        self.sha256 = hashlib.sha256(model).hexdigest()
        """Hexadecimal hash of the model file."""

    def encode(self, text: str) -> list[int]:
        """Token ids of the text, without BOS and EOS."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without BOS and EOS."""
        try:
            batch: list[list[int]] = self._processor.encode(list(texts))
        except (RuntimeError, TypeError):
            for text in texts:
                text.encode()  # raises UnicodeEncodeError, a ValueError, at a lone surrogate
            raise
        for index, text in enumerate(texts):
            if SPACE_MARK in text:
                batch[index] = self._encode_with_space_marks(text)
        return batch

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the token ids; PAD, BOS and EOS are skipped."""
        text: str = self._processor.decode(list(ids))
        return text

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """Text of each list of token ids; PAD, BOS and EOS are skipped."""
        return [self.decode(ids) for ids in batch]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What each token id stands for, spaces shown as U+2581, bytes as `<0xC3>`."""
        return [self._processor.id_to_piece(int(index)) for index in ids]

    def _encode_with_space_marks(self, text: str) -> list[int]:
        """Token ids where U+2581 stands in the text: its bytes, and what is between as if within a word."""
        first, *others = text.split(SPACE_MARK)
        ids: list[int] = self._processor.encode(first)
        # A leading newline keeps SentencePiece from putting a space before the text; no piece contains one.
        newline = self._processor.encode("\n")
        for part in others:
            ids += self._space_mark_ids + self._processor.encode("\n" + part)[len(newline) :]
        return ids


def learn_subwords(train_parquet: Path, config: TokenizerConfig) -> bytes:
    """A model of `SubwordTokenizer`, learnt from both columns of the training text.

    The same text and configuration give the same bytes, whatever the machine has of cores. A vocabulary
    size that the text does not allow is a ValueError that says which sizes it does.
    """
    model = io.BytesIO()
    faults: list[Exception] = []
    # In a thread: SentencePiece learns for minutes in C++, where the main thread would take no Ctrl-C.
    thread = ThreadPoolExecutor(1)
    try:
        thread.submit(
            spm.SentencePieceTrainer.train,
            sentence_iterator=_keeping_faults(_sentences(train_parquet, config.max_sentences), faults),
            model_writer=model,
            model_type=config.kind,
            vocab_size=config.vocab_size,
            normalization_rule_name="identity",
            character_coverage=1.0,
            byte_fallback=True,
            add_dummy_prefix=True,
            remove_extra_whitespaces=False,
            split_digits=True,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            num_threads=NUM_THREADS,
            max_sentence_length=MAX_SENTENCE_BYTES,
            minloglevel=0 if logger.isEnabledFor(logging.INFO) else 3,
        ).result()
    except RuntimeError as error:
        if faults:
            raise faults[0] from None
        raise ValueError(_reworded(str(error), train_parquet, config)) from None
    finally:
        thread.shutdown(wait=False)
    return model.getvalue()


def _sentences(parquet: Path, limit: int) -> Iterator[str]:
    """At most `limit` sentences of both columns, without the characters that SentencePiece reserves."""
    for _, text in sampled_sentences(parquet, limit):
        yield RESERVED.sub(" ", text)


def _keeping_faults(sentences: Iterator[str], faults: list[Exception]) -> Iterator[str]:
    """The same sentences; a fault of theirs is also put into `faults`, since SentencePiece hides its type."""
    try:
        yield from sentences
    except (ValueError, OSError) as error:
        faults.append(error)
        raise


def _reworded(message: str, parquet: Path, config: TokenizerConfig) -> str:
    """SentencePiece's complaint in our words: which key, its value, what the text allows."""
    key = f"tokenizer.vocab_size is {config.vocab_size}"
    if match := re.search(r"size too high .* value <= (\d+)", message):
        return f"{key}, but the text in {parquet} supports at most {match[1]}; lower it, or add text"
    if match := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return (
            f"{key}, but the text in {parquet} needs at least {match[1]}: one piece for each character, "
            "256 bytes and 4 special ones; raise it"
        )
    if "sentences_.empty()" in message:
        return f"{parquet}: no sentences to learn a vocabulary from; see the counts of stage prepare"
    return f"{parquet}: SentencePiece could not learn a vocabulary: {message}"
