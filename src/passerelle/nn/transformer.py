"""The Transformer encoder-decoder (Vaswani et al. 2017), post-norm as in the paper or pre-norm.

Choices: ReLU in the feed-forward layers, embeddings scaled by sqrt(d_model), dropout on embeddings, on attention
weights and on each sub-layer's output. Pre-norm (Xiong et al. 2020) adds a last norm to each stack. Positions
may be learned, and attention scored additively.
Shapes: B batch, S source length, T target length, D width, V vocabulary.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from passerelle.nn.dropout import Dropout
from passerelle.nn.embedding import Embedding
from passerelle.nn.feed_forward import FeedForward
from passerelle.nn.masking import causal_mask
from passerelle.nn.multi_head import MultiHeadAttention, Scoring
from passerelle.nn.positions import PositionKind, build_positions
from passerelle.nn.sharing import Sharing
from passerelle.nn.transformer_state import KeysAndValues, TransformerMemory, TransformerState


class Residual(nn.Module):
    """The way around a sub-layer: where its input is normalised, and how its output is added."""

    def __init__(self, d_model: int, dropout: float, norm_first: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.norm_first = norm_first

    def enter(self, x: Tensor) -> Tensor:
        """What the sub-layer receives: (B, T, D) -> (B, T, D)."""
        return self.norm(x) if self.norm_first else x

    def leave(self, x: Tensor, output: Tensor) -> Tensor:
        """The block's input and the sub-layer's output -> the next block's input, all (B, T, D)."""
        added = x + self.dropout(output)
        return added if self.norm_first else self.norm(added)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float,
        norm_first: bool,
        attention: Scoring = "dot",
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads, dropout, attention=attention)
        self.around_self_attention = Residual(d_model, dropout, norm_first)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.around_feed_forward = Residual(d_model, dropout, norm_first)

    def forward(self, x: Tensor, source_mask: Tensor) -> Tensor:
        """x (B, S, D), source_mask (B, 1, 1, S) -> (B, S, D)."""
        entered = self.around_self_attention.enter(x)
        key, value = self.self_attention.keys_and_values(entered)
        x = self.around_self_attention.leave(x, self.self_attention(entered, key, value, source_mask))
        entered = self.around_feed_forward.enter(x)
        return self.around_feed_forward.leave(x, self.feed_forward(entered))


class DecoderLayer(nn.Module):
    """Self-attention over the target so far, attention over the source, then feed-forward."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float,
        norm_first: bool,
        attention: Scoring = "dot",
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads, dropout, attention=attention)
        self.around_self_attention = Residual(d_model, dropout, norm_first)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, dropout, attention=attention)
        self.around_cross_attention = Residual(d_model, dropout, norm_first)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.around_feed_forward = Residual(d_model, dropout, norm_first)

    def forward(
        self,
        x: Tensor,
        past: KeysAndValues | None,
        target_mask: Tensor | None,
        source: KeysAndValues,
        source_mask: Tensor,
        sharing: Sharing | None = None,
    ) -> tuple[Tensor, KeysAndValues]:
        """x (B, T, D) of the new tokens -> (B, T, D), and keys and values of all target tokens so far.

        target_mask (T, K) covers past and new tokens. source and source_mask (N, 1, 1, S) are of N sentences; sharing
        says which row attends to which, and without it N is B.
        """
        entered = self.around_self_attention.enter(x)
        key, value = self.self_attention.keys_and_values(entered)
        if past is not None:
            key, value = torch.cat((past[0], key), dim=2), torch.cat((past[1], value), dim=2)
        x = self.around_self_attention.leave(x, self.self_attention(entered, key, value, target_mask))
        entered = self.around_cross_attention.enter(x)
        grouped = entered if sharing is None else sharing.group(entered)
        attended = self.cross_attention(grouped, *source, source_mask)
        x = self.around_cross_attention.leave(x, attended if sharing is None else sharing.ungroup(attended))
        entered = self.around_feed_forward.enter(x)
        return self.around_feed_forward.leave(x, self.feed_forward(entered)), (key, value)


class Transformer(nn.Module):
    """Encoder, decoder and output layer; implements `model.Seq2Seq`."""

    def __init__(
        self,
        vocab_size: int,
        *,
        d_model: int,
        num_heads: int,
        num_encoder_layers: int,
        num_decoder_layers: int,
        d_ff: int,
        dropout: float,
        norm_first: bool,
        share_embeddings: bool,
        positions: PositionKind = "sinusoidal",
        attention: Scoring = "dot",
    ) -> None:
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.source_embedding = Embedding(vocab_size, d_model)
        self.target_embedding = self.source_embedding if share_embeddings else Embedding(vocab_size, d_model)
        self.positions = build_positions(positions, d_model)
        self.dropout = Dropout(dropout)
        layer = (d_model, num_heads, d_ff, dropout, norm_first, attention)
        self.encoder = nn.ModuleList(EncoderLayer(*layer) for _ in range(num_encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*layer) for _ in range(num_decoder_layers))
        self.encoder_norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()
        self.decoder_norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        if share_embeddings:
            self.output.weight = self.target_embedding.weight
        self._initialise(d_model)

    def encode(self, source: Tensor, source_lengths: Tensor) -> TransformerMemory:
        """source (B, S), source_lengths (B,) -> memory; what stands past a sentence's length has no effect."""
        mask = torch.arange(source.size(1), device=source.device) < source_lengths.unsqueeze(1)  # (B, S)
        x = self._embed(self.source_embedding, source, 0)
        for layer in self.encoder:
            x = layer(x, mask[:, None, None])
        states = self.encoder_norm(x)
        layers: Iterable[DecoderLayer] = self.decoder  # type: ignore[assignment]
        pairs = (layer.cross_attention.keys_and_values(states) for layer in layers)
        # Laid out as the matrix product wants them, which would else copy them at each step of generation
        return TransformerMemory(mask, tuple((key.contiguous(), value.contiguous()) for key, value in pairs))

    def start(self, memory: TransformerMemory) -> TransformerState:
        """The state before the first target token."""
        return TransformerState(0, ())

    def decode(
        self, target_in: Tensor, memory: TransformerMemory, state: TransformerState
    ) -> tuple[Tensor, TransformerState]:
        """target_in (B, T), the tokens after those in state -> logits (B, T, V), and the state after them.

        All target tokens at once is teacher forcing, one at a time is generation; they agree.
        """
        hidden, state = self.decode_hidden(target_in, memory, state)
        return self.output(hidden), state

    def decode_hidden(
        self, target_in: Tensor, memory: TransformerMemory, state: TransformerState
    ) -> tuple[Tensor, TransformerState]:
        """As `decode`, with the hidden states (B, T, D) that the output layer receives."""
        past, num_new = state.num_tokens, target_in.size(1)
        x = self._embed(self.target_embedding, target_in, past)
        target_mask = causal_mask(num_new, past, x.device) if num_new > 1 else None
        source_mask = memory.mask[:, None, None]
        caches = []
        for index, layer in enumerate(self.decoder):
            cache = state.layers[index] if past else None
            x, cache = layer(x, cache, target_mask, memory.layers[index], source_mask, memory.sharing)
            caches.append(cache)
        return self.decoder_norm(x), TransformerState(past + num_new, tuple(caches))

    def _embed(self, embedding: nn.Embedding, tokens: Tensor, start: int) -> Tensor:
        return self.dropout(self.positions(embedding(tokens) * self.scale, start))

    def _initialise(self, d_model: int) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=d_model**-0.5)
