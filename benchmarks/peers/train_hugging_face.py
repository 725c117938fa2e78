"""Training speed of Hugging Face's MarianMTModel in a plain loop."""

import torch
from torch import nn
from torch.nn import functional
from transformers import MarianConfig, MarianMTModel
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
    VOCAB_SIZE,
    autocast,
    read_arguments,
)


def build_model(attention: str) -> MarianMTModel:
    """Of the size that all have; attention: `sdpa` (its default) or `eager`."""
    config = MarianConfig(
        vocab_size=VOCAB_SIZE,
        d_model=D_MODEL,
        encoder_layers=NUM_LAYERS,
        decoder_layers=NUM_LAYERS,
        encoder_attention_heads=NUM_HEADS,
        decoder_attention_heads=NUM_HEADS,
        encoder_ffn_dim=D_FF,
        decoder_ffn_dim=D_FF,
        activation_function="relu",
        dropout=DROPOUT,
        attention_dropout=DROPOUT,
        max_position_embeddings=256,
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        attn_implementation=attention,
    )
    return MarianMTModel(config).train()


def main() -> None:
    """Train, and print the measurement."""
    arguments, batches, stopwatch = read_arguments()
    model = build_model(arguments.attention)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=BETAS, fused=True)
    for source, target in stopwatch.over(batches):
        optimizer.zero_grad()
        with autocast(arguments.precision):
            logits = model(
                input_ids=source,
                attention_mask=(source != PAD).long(),
                decoder_input_ids=target[:, :-1],
                use_cache=False,
            ).logits
            loss = functional.cross_entropy(
                logits.flatten(0, 1),
                target[:, 1:].flatten(),
                ignore_index=PAD,
                label_smoothing=LABEL_SMOOTHING,
            )
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    stopwatch.report(model)


if __name__ == "__main__":
    main()
