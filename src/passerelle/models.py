"""From `params.yaml`'s model section to a model."""

from passerelle.config import ModelConfig
from passerelle.nn.bahdanau import Bahdanau
from passerelle.nn.transformer import Transformer

Model = Transformer | Bahdanau
"""Each a module that implements `nn.model.Seq2Seq`."""


def build_model(config: ModelConfig, vocab_size: int) -> Model:
    """A freshly initialised model (torch's global generator) over a joint vocabulary of vocab_size."""
    match config.name:
        case "transformer":
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
                positions=config.positions,
                attention=config.attention,
            )
        case "bahdanau":
            return Bahdanau(
                vocab_size,
                embedding_width=config.d_model,
                hidden_width=config.d_model,
                num_layers=config.num_layers,
                dropout=config.dropout,
                cell=config.cell,
                alignment=config.alignment,
                share_embeddings=config.share_embeddings,
            )
