"""A small untrained model with a tokenizer of its own, as stage `train` would leave it."""

from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from passerelle.config import LanguagesConfig, ModelConfig, TokenizerConfig
from passerelle.corpus.sentence_hashes import hashes_of_pairs
from passerelle.data.tokenizer import load_tokenizer, train_tokenizer
from passerelle.model_folder import LoadedModel, load_model, save_model
from passerelle.models import Model, build_model

ENGLISH = (
    ("We", "You", "They"),
    ("see", "sell", "hide"),
    ("a boat", "an old clock", "ten plums"),
    (".", "!", "?"),
)
FRENCH = (
    ("Nous", "Vous", "Ils"),
    ("voyons", "vendez", "cachent"),
    ("un bateau", "dix prunes"),
    (".", " !", " ?"),
)
SOURCES = [" ".join(words[:3]) + words[3] for words in product(*ENGLISH)]
TARGETS = [" ".join(words[:3]) + words[3] for words in product(*FRENCH)]
CONFIG = ModelConfig(d_model=24, num_heads=3, num_layers=2, d_ff=40)
RECURRENT = ModelConfig(name="bahdanau", d_model=24, num_layers=2)


def write_small_model(folder: Path, config: ModelConfig = CONFIG) -> Path:
    """The model as a folder; its weights are random, and it seldom ends a sentence by itself."""
    texts = pa.array(SOURCES), pa.array((TARGETS * 2)[: len(SOURCES)])
    pq.write_table(pa.table({"source": texts[0], "target": texts[1]}), folder / "train.parquet")
    train_tokenizer(folder / "train.parquet", folder / "tokenizer", TokenizerConfig(vocab_size=300))
    tokenizer = load_tokenizer(folder / "tokenizer")
    torch.manual_seed(0)
    return save_as_stage_train(folder, build_model(config, tokenizer.vocab_size), config)


def save_as_stage_train(folder: Path, model: Model, config: ModelConfig) -> Path:
    """The model folder beside the tokenizer and the train.parquet that it was made from."""
    weights = model.state_dict()
    for name in ("output.weight", "target_embedding.weight"):  # one tensor with source_embedding.weight
        del weights[name]
    save_model(
        folder / "model",
        weights,
        folder / "tokenizer" / "tokenizer.model",
        model=config,
        languages=LanguagesConfig(),
        fingerprint="0123456789abcdef",
        training_sentences=hashes_of_pairs(folder / "train.parquet"),
    )
    return folder / "model"


def small_model(folder: Path, config: ModelConfig = CONFIG) -> LoadedModel:
    return load_model(write_small_model(folder, config))
