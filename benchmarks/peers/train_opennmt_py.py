"""Training speed of OpenNMT-py: its own model, loss, optimizer and trainer, on batches of ours."""

from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import Any

import pyonmttok
import torch
from onmt.constants import DefaultTokens
from onmt.model_builder import build_model
from onmt.opts import train_opts
from onmt.trainer import build_trainer
from onmt.utils.optimizers import Optimizer
from onmt.utils.parse import ArgumentParser
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

OPTIONS = f"""
    -data {{}} -src_vocab none -share_vocab
    -encoder_type transformer -decoder_type transformer -position_encoding -max_relative_positions 0
    -layers {NUM_LAYERS} -hidden_size {D_MODEL} -word_vec_size {D_MODEL} -heads {NUM_HEADS} -transformer_ff {D_FF}
    -share_embeddings -share_decoder_embeddings
    -dropout {DROPOUT} -attention_dropout {DROPOUT} -label_smoothing {LABEL_SMOOTHING}
    -param_init 0 -param_init_glorot -normalization tokens -max_grad_norm 1
    -optim adam -adam_beta1 {BETAS[0]} -adam_beta2 {BETAS[1]} -learning_rate {LEARNING_RATE}
    -report_every 1000000
"""


def options() -> Namespace:
    """As its command `onmt_train` reads them."""
    parser = ArgumentParser()
    train_opts(parser)
    found = parser.parse_args(OPTIONS.split())
    ArgumentParser.validate_train_opts(found)
    ArgumentParser.update_model_opts(found)
    ArgumentParser.validate_model_opts(found)
    found.data = {}
    return found


def own_form(batches: Iterable[Batch]) -> Iterator[tuple[dict[str, Any], int]]:
    """Batches as its iterator makes them: tokens with an axis of features, and the number of the corpus."""
    for source, target in batches:
        yield (
            {
                "src": source.unsqueeze(-1),
                "srclen": (source != PAD).sum(1),
                "tgt": target.unsqueeze(-1),
            },
            0,
        )


def main() -> None:
    """Train, and print the measurement."""
    _, batches, stopwatch = read_arguments()
    opt = options()
    words = [DefaultTokens.PAD, DefaultTokens.UNK, DefaultTokens.BOS, DefaultTokens.EOS, *vocabulary()[4:]]
    vocab = pyonmttok.build_vocab_from_tokens(words)
    assert [vocab[word] for word in words[:5]] == list(range(5))
    vocabs = {"src": vocab, "tgt": vocab, "data_task": "seq2seq", "decoder_start_token": DefaultTokens.BOS}
    model = build_model(opt, opt, vocabs, None, -1)
    torch.manual_seed(0)
    trainer = build_trainer(opt, -1, model, vocabs, Optimizer.from_opt(model, opt))
    trainer.train(own_form(stopwatch.over(batches)), 0, save_checkpoint_steps=0)
    stopwatch.report(model)


if __name__ == "__main__":
    main()
