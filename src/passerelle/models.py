"""From `params.yaml`'s model section to a model."""

from passerelle.config import TransformerConfig
from passerelle.nn.transformer import Transformer


def build_model(config: TransformerConfig, vocab_size: int) -> Transformer:
    """A freshly initialised model (torch's global generator) over a joint vocabulary of vocab_size."""
    return Transformer(
        vocab_size,
        d_model=config.d_model,
        num_heads=config.num_heads,
        num_encoder_layers=config.num_layers,
        num_decoder_layers=config.num_layers,
        d_ff=config.d_ff,
        dropout=config.dropout,
        norm_first=config.norm == "pre",
        share_embeddings=config.share_embeddings,
    )
