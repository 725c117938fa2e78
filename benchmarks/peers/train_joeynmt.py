"""Training speed of JoeyNMT: its own model, loss, optimizer and training loop, on batches of ours."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch as JoeyBatch
from joeynmt.config import parse_global_args
from joeynmt.model import build_model
from joeynmt.training import TrainManager
from joeynmt.vocabulary import Vocabulary
from torch import Tensor
from workload import (
    BETAS,
    BOS,
    D_FF,
    D_MODEL,
    DROPOUT,
    EOS,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    NUM_HEADS,
    NUM_LAYERS,
    PAD,
    UNK,
    VOCAB_SIZE,
    Batch,
    Stopwatch,
    read_arguments,
)

NEVER = 1_000_000
OWN_UNK, OWN_PAD = 0, 1
"""Its vocabulary begins with these two."""


def side() -> dict[str, Any]:
    """The section of its file on the encoder; that on the decoder is alike."""
    return {
        "type": "transformer",
        "num_layers": NUM_LAYERS,
        "num_heads": NUM_HEADS,
        "hidden_size": D_MODEL,
        "ff_size": D_FF,
        "dropout": DROPOUT,
        "layer_norm": "pre",
        "embeddings": {"embedding_dim": D_MODEL, "scale": True, "dropout": DROPOUT},
    }


def configuration(folder: str) -> dict[str, Any]:
    """As its command reads it from a YAML file."""
    special = {"unk_id": OWN_UNK, "pad_id": OWN_PAD, "bos_id": BOS, "eos_id": EOS}
    return {
        "name": "speed",
        "model_dir": folder,
        "use_cuda": False,
        "data": {"special_symbols": special},
        "testing": {},
        "training": {
            "optimizer": "adam",
            "adam_betas": list(BETAS),
            "learning_rate": LEARNING_RATE,
            "scheduling": "warmupinversesquareroot",  # its default does not know torch 2.7 and later
            "label_smoothing": LABEL_SMOOTHING,
            "clip_grad_norm": 1.0,
            "batch_size": 1,  # said to be needed; the batches are ours
            "epochs": 1,
            "logging_freq": NEVER,
            "validation_freq": NEVER,
        },
        "model": {
            "initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": side(),
            "decoder": side(),
        },
    }


def own_ids(ids: Tensor) -> Tensor:
    """The same words as its vocabulary numbers them."""
    return torch.where(ids == PAD, OWN_PAD, torch.where(ids == UNK, OWN_UNK, ids))


class Batches:
    """Stands in for its data set and its loader of batches."""

    def __init__(self, batches: list[Batch], stopwatch: Stopwatch) -> None:
        self.batches, self.stopwatch = batches, stopwatch
        self.batch_sampler = SimpleNamespace(set_seed=lambda seed: None, get_state=lambda: None)

    def make_iter(self, **_: Any) -> Iterable[JoeyBatch]:
        """What its training loop calls."""
        return self

    def __iter__(self) -> Iterator[JoeyBatch]:
        for source, target in self.stopwatch.over(self.batches):
            yield JoeyBatch(
                src=own_ids(source),
                src_length=(source != PAD).sum(1),
                src_prompt_mask=None,
                trg=own_ids(target),
                trg_prompt_mask=None,
                indices=torch.arange(len(source)),
                device=source.device,
                pad_index=OWN_PAD,
                eos_index=EOS,
            )


def main() -> None:
    """Train, and print the measurement."""
    _, batches, stopwatch = read_arguments()
    with tempfile.TemporaryDirectory() as folder:
        args = parse_global_args(configuration(folder), rank=0, mode="train")
        words = Vocabulary(list(map(str, range(4, VOCAB_SIZE))), args.data["special_symbols"])
        model = build_model(args.model, words, words)
        model.loss_function = ("crossentropy", LABEL_SMOOTHING)
        manager = TrainManager(
            rank=0,
            model=model,
            model_dir=Path(folder),
            device=args.device,
            autocast=args.autocast,
            train_args=args.train,
        )
        data = Batches(batches, stopwatch)
        manager.train_and_validate(train_data=data, valid_data=SimpleNamespace())
    stopwatch.report(model)


if __name__ == "__main__":
    main()
