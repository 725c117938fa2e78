"""Word vocabulary of both languages: whole words in lower case, as in the chapter.

Text is lower-cased, the marks `. , ! ?` are split off, and a word is what stands between spaces. A word that is
not in the vocabulary is UNK. So decoding an encoding loses case and rare words.

The chapter keeps a vocabulary for each language. This one is joint, as that of sub-words is, so that shards,
models and search need not know the kind; a model can learn which of its words are French.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from passerelle.config import TokenizerConfig
from passerelle.data.prepared import sampled_sentences
from passerelle.data.special import BOS, EOS, PAD, UNK

FORMAT = "passerelle words 1"
SPECIAL = {PAD: "<pad>", UNK: "<unk>", BOS: "<s>", EOS: "</s>"}
"""What the pieces of sub-words are called, too."""

_MARK = re.compile(r"[.,!?]")
_SPACE_BEFORE_MARK = re.compile(r" (?=[.,!?])")


class WordTokenizer:
    """Text to token ids and back, by a list of words; ids begin behind the special ones."""

    def __init__(self, model: bytes) -> None:
        """Raises ValueError where `model` is not what `learn_words` gives."""
        self._words = [*SPECIAL.values(), *_read_words(model)]
        self._ids = {word: index for index, word in enumerate(self._words) if index not in SPECIAL}
        self.vocab_size: int = len(self._words)
        """Number of token ids."""
        self.sha256 = hashlib.sha256(model).hexdigest()
        """Hexadecimal hash of the model file."""

    def encode(self, text: str) -> list[int]:
        """Token ids of the text, without BOS and EOS."""
        return [self._ids.get(word, UNK) for word in split_words(text)]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without BOS and EOS."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the token ids, UNK as `<unk>`; PAD, BOS and EOS are skipped.

        Marks follow their word without a space; `corpus.clean` gives French the spaces that it has before some.
        """
        text = " ".join(self.pieces([index for index in ids if index not in (PAD, BOS, EOS)]))
        return _SPACE_BEFORE_MARK.sub("", text)

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """Text of each list of token ids; PAD, BOS and EOS are skipped."""
        return [self.decode(ids) for ids in batch]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The word of each token id."""
        return [self._words[index] for index in ids]


def split_words(text: str) -> list[str]:
    """The words and marks of a text, in lower case: "I'm home." -> ["i'm", "home", "."]."""
    return _MARK.sub(r" \g<0> ", text.lower()).split()


def learn_words(train_parquet: Path, config: TokenizerConfig) -> bytes:
    """A model of `WordTokenizer`: the words that one of the languages has `min_frequency` times.

    At most `vocab_size` token ids; the most frequent words (in both languages together) come first, and equally
    frequent ones in the order of their characters. Raises ValueError where there is no such word.
    """
    counts: dict[str, Counter[str]] = {"source": Counter(), "target": Counter()}
    for side, text in sampled_sentences(train_parquet, config.max_sentences):
        counts[side].update(split_words(text))
    total = counts["source"] + counts["target"]
    if not total:
        raise ValueError(
            f"{train_parquet}: no sentences to learn a vocabulary from; see the counts of stage prepare"
        )
    frequent = {word for side in counts.values() for word in side if side[word] >= config.min_frequency}
    words = sorted(frequent - set(SPECIAL.values()), key=lambda word: (-total[word], word))
    if not words:
        raise ValueError(
            f"tokenizer.min_frequency is {config.min_frequency}, but no word in {train_parquet} is so frequent: "
            f"{max(side[word] for side in counts.values() for word in side)} times at most; lower it"
        )
    content = {"format": FORMAT, "words": words[: config.vocab_size - len(SPECIAL)]}
    return (json.dumps(content, ensure_ascii=False, indent=0) + "\n").encode()


def is_word_model(model: bytes) -> bool:
    """Whether the content of a model file is of this kind; a SentencePiece model begins otherwise."""
    return model.startswith(b"{")


def _read_words(model: bytes) -> list[str]:
    try:
        content = json.loads(model)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON ({error})") from None
    if content.get("format") != FORMAT:
        raise ValueError(f"format is {content.get('format')!r:.60}, but this version reads {FORMAT!r}")
    words = content.get("words")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("has no list of words")
    if len(set(words) | set(SPECIAL.values())) != len(words) + len(SPECIAL):
        raise ValueError("a word stands twice in its list, or is a special one")
    "".join(words).encode()  # raises UnicodeEncodeError, a ValueError, at a lone surrogate
    for word in words:
        if split_words(word) != [word]:
            raise ValueError(f"{word[:60]!r} is no word in lower case")
    return words
