"""Small models in float64 with random biases, of either kind, and a batch for them."""

import torch
from torch import Tensor, nn

from passerelle.nn.bahdanau import Alignment, Bahdanau, CellKind
from passerelle.nn.model import Seq2Seq
from passerelle.nn.multi_head import Scoring
from passerelle.nn.positions import PositionKind
from passerelle.nn.transformer import Transformer

V = 11
D, H, F = 12, 3, 20
"""Of the Transformer: width, heads, feed-forward width."""
EMBEDDING, HIDDEN, NUM_LAYERS = 4, 6, 2
"""Of the recurrent model."""
LENGTHS = torch.tensor([4, 7, 1])
SOURCE = torch.randint(4, V, (3, 7), generator=torch.Generator().manual_seed(0)) * (
    torch.arange(7) < LENGTHS[:, None]
)
TARGET = torch.randint(4, V, (3, 5), generator=torch.Generator().manual_seed(1))


def make_transformer(
    norm_first: bool,
    *,
    share_embeddings: bool = True,
    positions: PositionKind = "sinusoidal",
    attention: Scoring = "dot",
) -> Transformer:
    torch.manual_seed(4)
    model = Transformer(
        V,
        d_model=D,
        num_heads=H,
        num_encoder_layers=2,
        num_decoder_layers=3,
        d_ff=F,
        dropout=0.3,
        norm_first=norm_first,
        share_embeddings=share_embeddings,
        positions=positions,
        attention=attention,
    )
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or "norm" in name:
            nn.init.normal_(parameter, mean=1.0 if name.endswith("norm.weight") else 0.0, std=0.3)
    return model.double().eval()


def make_bahdanau(
    cell: CellKind = "gru",
    alignment: Alignment = "additive",
    *,
    width: int = EMBEDDING,
    num_layers: int = NUM_LAYERS,
) -> Bahdanau:
    torch.manual_seed(4)
    model = Bahdanau(
        V,
        embedding_width=width,
        hidden_width=HIDDEN,
        num_layers=num_layers,
        dropout=0.3,
        cell=cell,
        alignment=alignment,
        share_embeddings=width == HIDDEN,
    )
    for name, parameter in model.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter, std=0.5)
    return model.double().eval()


def logits(model: Seq2Seq, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
    memory = model.encode(source, lengths)
    return model.decode(target, memory, model.start(memory))[0]
