"""Training speed of Eole: its own model, loss, optimizer and trainer, on batches of ours."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyonmttok
from eole.config.run import TrainConfig
from eole.models.model import get_model_class
from eole.trainer import build_trainer
from eole.utils.optimizers import Optimizer
from workload import (
    BETAS,
    D_FF,
    D_MODEL,
    DROPOUT,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    NUM_HEADS,
    NUM_LAYERS,
    PAD,
    Batch,
    read_arguments,
    vocabulary,
)


def configuration(precision: str) -> TrainConfig:
    """As its command `eole train` reads it from a YAML file."""
    return TrainConfig(
        src_vocab="none",
        tgt_vocab="none",
        share_vocab=True,
        data={},
        report_every=1_000_000,
        model={
            "architecture": "transformer",
            "layers": NUM_LAYERS,
            "hidden_size": D_MODEL,
            "heads": NUM_HEADS,
            "transformer_ff": D_FF,
            "embeddings": {"word_vec_size": D_MODEL, "position_encoding_type": "SinusoidalInterleaved"},
            "share_embeddings": True,
            "share_decoder_embeddings": True,
        },
        training={
            "compute_dtype": precision,
            "dropout": [DROPOUT],
            "attention_dropout": [DROPOUT],
            "label_smoothing": LABEL_SMOOTHING,
            "param_init_method": "xavier_uniform",
            "normalization": "tokens",
            "max_grad_norm": 1.0,
            "optim": "adam",
            "adam_beta1": BETAS[0],
            "adam_beta2": BETAS[1],
            "learning_rate": LEARNING_RATE,
            "log_attention_entropy": False,
        },
    )


def own_form(batches: Iterable[Batch]) -> Iterator[tuple[dict[str, Any], int]]:
    """Batches as its iterator makes them, and the number of the corpus."""
    for source, target in batches:
        batch = {
            "src": source,
            "srclen": (source != PAD).sum(1),
            "tgt": target,
            "images": None,
            "prefix_len": None,
            "cid": ["corpus"] * len(source),
            "cid_line_number": list(range(len(source))),
        }
        yield batch, 0


def main() -> None:
    """Train, and print the measurement."""
    arguments, batches, stopwatch = read_arguments()
    config = configuration(arguments.precision)
    words = vocabulary()
    vocab = pyonmttok.build_vocab_from_tokens(words)
    specials = {
        "pad_token": words[0],
        "unk_token": words[1],
        "bos_token": words[2],
        "eos_token": words[3],
    }
    vocabs = {"src": vocab, "tgt": vocab, "specials": specials, "decoder_start_token": words[2]}
    model = get_model_class(config.model).for_training(config.model, vocabs, config.training, device_id=-1)
    trainer = build_trainer(config, -1, model, vocabs, Optimizer.from_config(model, config))
    trainer.train(own_form(stopwatch.over(batches)), 0, save_checkpoint_steps=0)
    stopwatch.report(model)


if __name__ == "__main__":
    main()
