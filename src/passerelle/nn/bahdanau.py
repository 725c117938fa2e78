"""The recurrent encoder-decoder with attention (Bahdanau et al. 2015), with GRU or LSTM cells.

The encoder's last states start the decoder. At each step the decoder's last layer, as the step before left it,
asks which of the encoder's states to attend to; their weighted sum and the token's embedding are its input.

Choices: the encoder reads in one direction, so that its states fit the decoder's, layer by layer; dropout between
layers and on attention weights, never from step to step (Zaremba et al. 2014); embeddings scaled by
sqrt(embedding_width), as in the Transformer; recurrent matrices begin orthogonal, as in the paper.
Shapes: B batch, S source length, T target length, D hidden width, V vocabulary.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from passerelle.nn.additive import AdditiveAttention
from passerelle.nn.attention import DotProductAttention
from passerelle.nn.dropout import Dropout
from passerelle.nn.embedding import Embedding

CellKind = Literal["gru", "lstm"]
Alignment = Literal["additive", "dot"]
LayerState = tuple[Tensor, ...]
"""Of one layer: hidden state (B, D), and with LSTM its memory cell (B, D)."""
Layers = tuple[LayerState, ...]


@dataclass(frozen=True)
class BahdanauMemory:
    """What the decoder needs of the source sentences."""

    mask: Tensor
    """(B, 1, S), True where a source token is real."""
    keys: Tensor
    """(B, S, D), what the decoder's state is compared with."""
    values: Tensor
    """(B, S, D), the hidden states of the encoder's last layer."""
    last: Layers
    """State of every encoder layer at each sentence's last token."""

    def reorder(self, index: Tensor) -> "BahdanauMemory":
        """Rows gathered along the batch."""
        return BahdanauMemory(
            self.mask.index_select(0, index),
            self.keys.index_select(0, index),
            self.values.index_select(0, index),
            _reorder(self.last, index),
        )


@dataclass(frozen=True)
class BahdanauState:
    """What the decoder has seen of the target sentences."""

    layers: Layers

    def reorder(self, index: Tensor) -> "BahdanauState":
        """Rows gathered along the batch."""
        return BahdanauState(_reorder(self.layers, index))


class Bahdanau(nn.Module):
    """Encoder, decoder and output layer; implements `model.Seq2Seq`."""

    def __init__(
        self,
        vocab_size: int,
        *,
        embedding_width: int,
        hidden_width: int,
        num_layers: int,
        dropout: float,
        cell: CellKind,
        alignment: Alignment,
        share_embeddings: bool,
    ) -> None:
        super().__init__()
        if share_embeddings and embedding_width != hidden_width:
            raise ValueError(
                f"share_embeddings makes the output layer as wide as an embedding, so embedding_width must be "
                f"hidden_width={hidden_width}, but is {embedding_width}"
            )
        self.scale = math.sqrt(embedding_width)
        self.source_embedding = Embedding(vocab_size, embedding_width)
        self.target_embedding = (
            self.source_embedding if share_embeddings else Embedding(vocab_size, embedding_width)
        )
        self.dropout = Dropout(dropout)
        recurrent_layers, recurrent_cell = _torch_classes(cell)
        between_layers = dropout if num_layers > 1 else 0.0  # torch warns where there is nothing between
        self.encoder = recurrent_layers(
            embedding_width, hidden_width, num_layers, batch_first=True, dropout=between_layers
        )
        input_widths = [hidden_width + embedding_width] + [hidden_width] * (num_layers - 1)
        self.decoder = nn.ModuleList(recurrent_cell(width, hidden_width) for width in input_widths)
        self.cross_attention = _make_attention(alignment, hidden_width, dropout)
        self.output = nn.Linear(hidden_width, vocab_size, bias=False)
        if share_embeddings:
            self.output.weight = self.target_embedding.weight
        self._initialise(hidden_width)

    def encode(self, source: Tensor, source_lengths: Tensor) -> BahdanauMemory:
        """source (B, S), source_lengths (B,) -> memory; what stands past a sentence's length has no effect."""
        mask = torch.arange(source.size(1), device=source.device) < source_lengths.unsqueeze(1)  # (B, S)
        embedded = self.source_embedding(source) * self.scale
        packed = pack_padded_sequence(embedded, source_lengths.cpu(), batch_first=True, enforce_sorted=False)
        hidden, last = self.encoder(packed)
        values, _ = pad_packed_sequence(hidden, batch_first=True, total_length=source.size(1))
        parts = last if isinstance(last, tuple) else (last,)  # each (num_layers, B, D)
        attention = self.cross_attention
        keys = attention.project_keys(values) if isinstance(attention, AdditiveAttention) else values
        return BahdanauMemory(mask.unsqueeze(1), keys, values, tuple(zip(*parts, strict=True)))

    def start(self, memory: BahdanauMemory) -> BahdanauState:
        """The state before the first target token: where the encoder ended."""
        return BahdanauState(memory.last)

    def decode(
        self, target_in: Tensor, memory: BahdanauMemory, state: BahdanauState
    ) -> tuple[Tensor, BahdanauState]:
        """target_in (B, T), the tokens after those in state -> logits (B, T, V), and the state after them.

        All target tokens in one call is teacher forcing, one a call is generation; they agree.
        """
        hidden, state = self.decode_hidden(target_in, memory, state)
        return self.output(hidden), state

    def decode_hidden(
        self, target_in: Tensor, memory: BahdanauMemory, state: BahdanauState
    ) -> tuple[Tensor, BahdanauState]:
        """As `decode`, with the hidden states (B, T, D) that the output layer receives."""
        layers, hidden = state.layers, []
        embedded = self.target_embedding(target_in) * self.scale
        for x in embedded.unbind(1):
            query = layers[-1][0].unsqueeze(1)  # (B, 1, D)
            context = self.cross_attention(query, memory.keys, memory.values, memory.mask)
            layers = self._step(torch.cat((context.squeeze(1), x), dim=-1), layers)
            hidden.append(layers[-1][0])
        return torch.stack(hidden, dim=1), BahdanauState(layers)

    def _step(self, x: Tensor, layers: Layers) -> Layers:
        """x (B, input width), the first layer's input, and the states before it -> the states after it."""
        after: list[LayerState] = []
        for cell, state in zip(self.decoder, layers, strict=True):
            below = self.dropout(after[-1][0]) if after else x
            after.append(cell(below, state) if isinstance(cell, nn.LSTMCell) else (cell(below, state[0]),))
        return tuple(after)

    def _initialise(self, hidden_width: int) -> None:
        for stack in (self.encoder, self.decoder):
            for name, parameter in stack.named_parameters():
                _initialise_gates(name, parameter, hidden_width)
        for table in (self.source_embedding, self.target_embedding, self.output):
            nn.init.normal_(table.weight, std=table.weight.size(1) ** -0.5)


def _torch_classes(cell: CellKind) -> tuple[type[nn.GRU | nn.LSTM], type[nn.GRUCell | nn.LSTMCell]]:
    match cell:
        case "gru":
            return nn.GRU, nn.GRUCell
        case "lstm":
            return nn.LSTM, nn.LSTMCell
    raise ValueError(f"cell must be gru or lstm, but is {cell}")


def _make_attention(
    alignment: Alignment, hidden_width: int, dropout: float
) -> AdditiveAttention | DotProductAttention:
    match alignment:
        case "additive":
            return AdditiveAttention(hidden_width, hidden_width, hidden_width, dropout)
        case "dot":
            return DotProductAttention(dropout)
    raise ValueError(f"alignment must be additive or dot, but is {alignment}")


def _initialise_gates(name: str, parameter: Tensor, hidden_width: int) -> None:
    """Each gate by itself; an LSTM begins by keeping its memory (Jozefowicz et al. 2015, section 2.2)."""
    gates = parameter.split(hidden_width)
    for gate in gates:
        if "weight_ih" in name:
            nn.init.xavier_uniform_(gate)
        elif "weight_hh" in name:
            nn.init.orthogonal_(gate)
        else:
            nn.init.zeros_(gate)
    if "bias_ih" in name and len(gates) == 4:
        nn.init.ones_(gates[1])  # an LSTM's: input, forget, cell, output


def _reorder(layers: Layers, index: Tensor) -> Layers:
    return tuple(tuple(part.index_select(0, index) for part in state) for state in layers)
