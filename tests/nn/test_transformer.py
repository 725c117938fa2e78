"""The Transformer against torch's own, and in what is its own alone."""

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from passerelle.config import ModelConfig
from passerelle.models import build_model
from passerelle.nn.positions import sinusoidal_encoding
from passerelle.nn.recording import record_attention
from passerelle.nn.transformer import DecoderLayer, EncoderLayer, Transformer
from small_networks import LENGTHS, SOURCE, TARGET, D, F, H, V, logits, make_transformer


@pytest.fixture(params=product(("pre", "post"), ("sinusoidal", "learned"), ("dot", "additive")), ids="-".join)
def model(request: pytest.FixtureRequest) -> Transformer:
    norm, positions, attention = request.param
    return make_transformer(norm == "pre", positions=positions, attention=attention)


def copy_attention(theirs: nn.MultiheadAttention, ours: nn.Module) -> None:
    projections = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([projection.weight for projection in projections]))
    no_bias = torch.zeros(D)
    theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, no_bias, ours.value.bias]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_layer(theirs: nn.Module, ours: EncoderLayer | DecoderLayer) -> None:
    copy_attention(theirs.self_attn, ours.self_attention)
    norms = [ours.around_self_attention.norm, ours.around_feed_forward.norm]
    if isinstance(ours, DecoderLayer):
        copy_attention(theirs.multihead_attn, ours.cross_attention)
        norms.insert(1, ours.around_cross_attention.norm)
    for number, norm in enumerate(norms, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())


def torch_transformer(model: Transformer, norm_first: bool) -> nn.Transformer:
    """torch's own, which stays in training (without dropout): its inference-only path drops padded columns."""
    settings = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first}
    theirs = nn.Transformer(
        D,
        H,
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(D, H, F, **settings), 2, model.encoder_norm, enable_nested_tensor=False
        ),
        custom_decoder=nn.TransformerDecoder(
            nn.TransformerDecoderLayer(D, H, F, **settings), 3, model.decoder_norm
        ),
        batch_first=True,
    ).double()
    pairs = zip(
        [*theirs.encoder.layers, *theirs.decoder.layers], [*model.encoder, *model.decoder], strict=True
    )
    for their_layer, our_layer in pairs:
        copy_layer(their_layer, our_layer)
    return theirs


def logits_by_torch(model: Transformer, norm_first: bool) -> Tensor:
    is_padding = torch.arange(7) >= LENGTHS[:, None]
    hidden = torch_transformer(model, norm_first)(
        model.source_embedding(SOURCE) * D**0.5 + sinusoidal_encoding(7, D),
        model.target_embedding(TARGET) * D**0.5 + sinusoidal_encoding(5, D),
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        src_key_padding_mask=is_padding,
        memory_key_padding_mask=is_padding,
    )
    return model.output(hidden)


@pytest.mark.parametrize("norm_first", [True, False])
def test_logits_equal_torch_with_copied_weights(norm_first: bool) -> None:
    model = make_transformer(norm_first)
    with torch.no_grad():
        expected = logits_by_torch(model, norm_first)
        torch.testing.assert_close(logits(model, SOURCE, LENGTHS, TARGET), expected)


def test_shared_embeddings_are_one_parameter_and_separate_ones_are_three() -> None:
    def count(model: Transformer) -> int:
        return sum(parameter.numel() for parameter in model.parameters())

    assert count(make_transformer(True, share_embeddings=False)) - count(make_transformer(True)) == 2 * V * D


def test_additive_attention_and_learned_positions_bring_parameters_of_their_own() -> None:
    plain = ModelConfig(d_model=D, num_heads=H, num_layers=2, d_ff=F)
    other = plain.model_copy(update={"attention": "additive", "positions": "learned"})
    names, other_names = (set(build_model(config, V).state_dict()) for config in (plain, other))
    attentions = [f"encoder.{layer}.self_attention" for layer in range(2)]
    attentions += [f"decoder.{layer}.{kind}_attention" for layer in range(2) for kind in ("self", "cross")]
    assert names < other_names
    assert other_names - names == {
        "positions.table.weight",
        *(f"{attention}.attention.score" for attention in attentions),
    }


def test_every_parameter_is_trained(model: Transformer) -> None:
    logits(model, SOURCE, LENGTHS, TARGET).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0).any(), name
        assert parameter.grad.isfinite().all(), name


def test_recorded_attention_has_every_layer_and_its_rows_sum_to_one(model: Transformer) -> None:
    with torch.no_grad(), record_attention(model) as tape:
        logits(model, SOURCE, LENGTHS, TARGET)
    shapes = {"encoder": (3, H, 7, 7), "decoder_self": (3, H, 5, 5), "cross": (3, H, 5, 7)}
    layers = {"encoder": 2, "decoder_self": 3, "cross": 3}
    assert sorted(tape) == sorted(f"{kind}.{layer}" for kind in layers for layer in range(layers[kind]))
    for name, (weights,) in tape.items():
        assert weights.shape == shapes[name.split(".")[0]]
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1], dtype=torch.float64))
    assert tape["cross.1"][0][2, :, :, 1:].abs().max() == 0.0


def test_nothing_observes_attention_after_the_recording(model: Transformer) -> None:
    with record_attention(model) as tape:
        pass
    logits(model, SOURCE, LENGTHS, TARGET)
    assert all(not calls for calls in tape.values())
