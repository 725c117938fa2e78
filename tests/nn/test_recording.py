"""The tape has the same keys and dimensions for every model, and leaves nothing behind."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from passerelle.nn.attention import AttentionWeights
from passerelle.nn.bahdanau import Bahdanau
from passerelle.nn.recording import record_attention
from passerelle.nn.transformer import Transformer

B, S, T, V = 2, 7, 5, 11
RECURRENT: dict[str, Any] = {
    "embedding_width": 6, "hidden_width": 6, "num_layers": 2, "dropout": 0.4, "share_embeddings": True,
}  # fmt: skip
MODELS = {
    "transformer": lambda: Transformer(
        V, d_model=12, num_heads=3, num_encoder_layers=2, num_decoder_layers=1, d_ff=8, dropout=0.4,
        norm_first=True, share_embeddings=True,
    ),
    "additive": lambda: Bahdanau(V, cell="gru", alignment="additive", **RECURRENT),
    "dot": lambda: Bahdanau(V, cell="lstm", alignment="dot", **RECURRENT),
}  # fmt: skip
ONE_A_STEP = {"cross.0": [(B, 1, 1, S)] * T}
EXPECTED = {
    "transformer": {
        "encoder.0": [(B, 3, S, S)],
        "encoder.1": [(B, 3, S, S)],
        "decoder_self.0": [(B, 3, T, T)],
        "cross.0": [(B, 3, T, S)],
    },
    "additive": ONE_A_STEP,
    "dot": ONE_A_STEP,
}


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def decode(model: Any) -> Tensor:
    memory = model.encode(torch.full((B, S), 4), torch.tensor([S, 3]))
    return model.decode(torch.full((B, T), 5), memory, model.start(memory))[0]


def hooks(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


def test_keys_say_kind_and_layer_and_every_call_has_batch_heads_queries_keys(name: str) -> None:
    with record_attention(model := MODELS[name]()) as tape:
        decode(model)
    assert {key: [weights.shape for weights in calls] for key, calls in tape.items()} == EXPECTED[name]


def test_recorded_weights_are_detached_and_those_before_dropout(name: str) -> None:
    with record_attention(model := MODELS[name]()) as tape:
        assert decode(model).requires_grad
    for calls in tape.values():
        for weights in calls:
            assert not weights.requires_grad
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


def test_recording_changes_no_logits_and_leaves_no_hook(name: str) -> None:
    model = MODELS[name]().eval()
    before = decode(model)
    with record_attention(model):
        assert hooks(model) == sum(isinstance(module, AttentionWeights) for module in model.modules())
        assert torch.equal(decode(model), before)
    assert hooks(model) == 0


def test_an_error_within_the_block_leaves_no_hook(name: str) -> None:
    model = MODELS[name]()
    with pytest.raises(KeyError), record_attention(model):
        raise KeyError
    assert hooks(model) == 0
