"""Training speed of Hugging Face's MarianMTModel in a plain loop."""

from torch import Tensor
from transformers import MarianConfig, MarianMTModel
from workload import (
    BOS,
    D_FF,
    D_MODEL,
    DROPOUT,
    EOS,
    NUM_HEADS,
    NUM_LAYERS,
    PAD,
    VOCAB_SIZE,
    read_arguments,
    train_plainly,
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

    def logits_of(source: Tensor, target: Tensor) -> Tensor:
        mask = (source != PAD).long()
        return model(input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits

    train_plainly(model, logits_of, arguments.precision, batches, stopwatch)


if __name__ == "__main__":
    main()
