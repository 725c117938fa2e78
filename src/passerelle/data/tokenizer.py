"""The tokenizer of a run, of either kind: sub-words (`subwords`) or whole words (`words`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from passerelle.config import TokenizerConfig
from passerelle.data.subwords import SubwordTokenizer, learn_subwords
from passerelle.data.words import WordTokenizer, is_word_model, learn_words
from passerelle.files import whole_folder

MODEL_NAME = "tokenizer.model"


class Tokenizer(Protocol):
    """Text to token ids and back. PAD, UNK, BOS, EOS have the ids of `special`."""

    vocab_size: int
    """Number of token ids."""
    sha256: str
    """Hexadecimal hash of the model file."""

    def encode(self, text: str) -> list[int]:
        """Token ids of the text, without BOS and EOS."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without BOS and EOS."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the token ids; PAD, BOS and EOS are skipped."""
        ...

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """Text of each list of token ids; PAD, BOS and EOS are skipped."""
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What each token id stands for."""
        ...


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in the file, or in the folder as `tokenizer.model`; the file's content tells its kind."""
    path = path / MODEL_NAME if path.is_dir() else path
    if not path.is_file():
        raise ValueError(f"{path}: no such file; run stage tokenizer first")
    model = path.read_bytes()
    try:
        return WordTokenizer(model) if is_word_model(model) else SubwordTokenizer(model)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; run stage tokenizer again") from None


def train_tokenizer(train_parquet: Path, folder: Path, config: TokenizerConfig) -> None:
    """Learn a vocabulary from both columns of the training text; write `tokenizer.model` into `folder`.

    The same text and configuration give the same bytes. What cannot be learnt from is a ValueError.
    """
    learn = learn_words if config.kind == "word" else learn_subwords
    model = learn(train_parquet, config)
    with whole_folder(folder) as temporary:
        (temporary / MODEL_NAME).write_bytes(model)
