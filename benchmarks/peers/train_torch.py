"""Training speed of torch.nn.Transformer in a plain loop, as its tutorials write it."""

import math

import torch
from torch import Tensor, nn
from workload import (
    D_FF,
    D_MODEL,
    DROPOUT,
    NUM_HEADS,
    NUM_LAYERS,
    PAD,
    VOCAB_SIZE,
    read_arguments,
    train_plainly,
)

LONGEST = 256


class Translator(nn.Module):
    """Shared embeddings, sinusoidal positions, torch's Transformer (norm first), output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB_SIZE, D_MODEL)
        nn.init.normal_(self.embedding.weight, std=D_MODEL**-0.5)
        self.dropout = nn.Dropout(DROPOUT)
        self.transformer = nn.Transformer(
            D_MODEL, NUM_HEADS, NUM_LAYERS, NUM_LAYERS, D_FF, DROPOUT, batch_first=True, norm_first=True
        )
        self.output = nn.Linear(D_MODEL, VOCAB_SIZE, bias=False)
        self.output.weight = self.embedding.weight
        places = torch.arange(LONGEST).unsqueeze(1)
        rates = torch.exp(torch.arange(0, D_MODEL, 2) * (-math.log(10000.0) / D_MODEL))
        angles = places * rates
        self.register_buffer("positions", torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1))

    def embed(self, tokens: Tensor) -> Tensor:
        """(B, T) -> (B, T, D)."""
        embedded = self.embedding(tokens) * math.sqrt(D_MODEL)
        return self.dropout(embedded + self.positions[: tokens.size(1)])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) -> logits (B, T, V)."""
        is_padding = source == PAD
        causal = nn.Transformer.generate_square_subsequent_mask(target.size(1), dtype=torch.bool)
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=causal,
            tgt_is_causal=True,
            src_key_padding_mask=is_padding,
            memory_key_padding_mask=is_padding,
        )
        return self.output(hidden)


def main() -> None:
    """Train, and print the measurement."""
    arguments, batches, stopwatch = read_arguments()
    model = Translator().train()
    train_plainly(model, model, arguments.precision, batches, stopwatch)


if __name__ == "__main__":
    main()
