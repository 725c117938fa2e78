"""A small model of the phrasebook, trained in seconds: it ends its sentences, and many of them are right."""

import json
import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from passerelle.config import ModelConfig, TokenizerConfig
from passerelle.corpus.clean import clean_text
from passerelle.corpus.phrasebook import constructions
from passerelle.data.special import BOS, EOS, PAD
from passerelle.data.tokenizer import Tokenizer, load_tokenizer, train_tokenizer
from passerelle.decoding.translate import pad_sources
from passerelle.model_folder import LoadedModel, load_model
from passerelle.models import Model, build_model
from small_model import save_as_stage_train

CONSTRUCTIONS = ("owning", "tastes", "moods", "belonging", "ages_and_hours", "homes")
"""Few enough to be learnt in seconds."""
NUM_HELD_OUT = 300
HELD_OUT = "held_out.json"
CONFIG = ModelConfig(d_model=64, num_heads=4, num_layers=1, d_ff=128, dropout=0.0)
NUM_STEPS, BATCH_PAIRS, RATE = 300, 48, 1e-2


@dataclass(frozen=True)
class Phrasebook:
    """The model, and sentences that it was not trained on, with one translation of each."""

    folder: Path
    loaded: LoadedModel
    sources: list[str]
    targets: list[str]


def make_phrasebook(folder: Path) -> None:
    """Train the model."""
    chosen = (pair for name in CONSTRUCTIONS for pair in constructions()[name])
    pairs = [
        (clean_text(english, "en"), clean_text(french, "fr")) for english, french in dict.fromkeys(chosen)
    ]
    random.Random(0).shuffle(pairs)
    held_out, pairs = pairs[:NUM_HELD_OUT], pairs[NUM_HELD_OUT:]
    columns = {"source": [source for source, _ in pairs], "target": [target for _, target in pairs]}
    pq.write_table(pa.table(columns), folder / "train.parquet")
    train_tokenizer(folder / "train.parquet", folder / "tokenizer", TokenizerConfig(vocab_size=500))
    tokenizer = load_tokenizer(folder / "tokenizer")
    save_as_stage_train(folder, trained(tokenizer, pairs), CONFIG)
    (folder / HELD_OUT).write_text(json.dumps(held_out), encoding="utf-8")


def read_phrasebook(folder: Path) -> Phrasebook:
    """What `make_phrasebook` has made there."""
    sources, targets = zip(*json.loads((folder / HELD_OUT).read_text(encoding="utf-8")), strict=True)
    return Phrasebook(folder / "model", load_model(folder / "model"), list(sources), list(targets))


def trained(tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> Model:
    """By plain Adam on pairs of like length."""
    torch.manual_seed(0)
    model = build_model(CONFIG, tokenizer.vocab_size)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    pairs = sorted(pairs, key=lambda pair: len(pair[0]))
    draw = random.Random(1)
    for step in range(NUM_STEPS):
        first = draw.randrange(len(pairs) - BATCH_PAIRS)
        sources, targets = zip(*pairs[first : first + BATCH_PAIRS], strict=True)
        optimizer.param_groups[0]["lr"] = RATE * min((step + 1) / 40, 1 - step / NUM_STEPS)
        optimizer.zero_grad()
        loss(model, tokenizer.encode_batch(sources), tokenizer.encode_batch(targets)).backward()
        optimizer.step()
    return model.eval()


def loss(model: Model, sources: list[list[int]], targets: list[list[int]]) -> torch.Tensor:
    device = torch.device("cpu")
    memory = model.encode(*pad_sources([[*source, EOS] for source in sources], device))
    target_in, _ = pad_sources([[BOS, *target] for target in targets], device)
    target_out, _ = pad_sources([[*target, EOS] for target in targets], device)
    logits, _ = model.decode(target_in, memory, model.start(memory))
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=PAD)
