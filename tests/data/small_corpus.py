"""A parallel corpus of 64 pairs, and the files that tests make of it."""

from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from passerelle.config import ShardsConfig, TokenizerConfig
from passerelle.data.tokenizer import Tokenizer, load_tokenizer, train_tokenizer

SUBJECTS = {"She": "Elle", "He": "Il", "Someone": "Quelqu'un", "My sister": "Ma sœur"}
VERBS = {"sees": "voit", "eats": "mange", "sells": "vend", "has found": "a trouvé"}
OBJECTS = {"the bread": "le pain", "12 apples": "12 pommes", "the cheese": "le fromage", "an egg": "un œuf"}
SOURCES = tuple(" ".join(words) + "." for words in product(SUBJECTS, VERBS, OBJECTS))
TARGETS = tuple(
    " ".join(words) + "." for words in product(SUBJECTS.values(), VERBS.values(), OBJECTS.values())
)
VOCAB_SIZE = 310
SEVERAL = ShardsConfig(max_tokens=40, shard_bytes=800)
"""Makes several shards of it."""

Texts = list[str] | tuple[str, ...]


def write_train(path: Path, sources: Texts = SOURCES, targets: Texts = TARGETS) -> Path:
    """A file like `train.parquet`."""
    pq.write_table(
        pa.table({"source": pa.array(sources, pa.string()), "target": pa.array(targets, pa.string())}), path
    )
    return path


def write_test(path: Path, sources: Texts, references: list[list[str]]) -> Path:
    """A file like `valid.parquet` and `test.parquet`."""
    pq.write_table(pa.table({"source": sources, "references": references}), path)
    return path


def learn(sources: Texts, targets: Texts, folder: Path, **config: object) -> Tokenizer:
    """A tokenizer of these texts, in `folder` / tokenizer."""
    train = write_train(folder / "train.parquet", sources, targets)
    train_tokenizer(train, folder / "tokenizer", TokenizerConfig.model_validate(config))
    return load_tokenizer(folder / "tokenizer")
