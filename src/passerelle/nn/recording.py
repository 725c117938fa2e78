"""Observing attention weights without storing them on a module."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from passerelle.nn.attention import AttentionWeights

KINDS = {
    ("encoder", "self_attention"): "encoder",
    ("decoder", "self_attention"): "decoder_self",
    ("decoder", "cross_attention"): "cross",
}


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Within the block, every attention of `model` appends its weights (B, H, Q, K) to the yielded tape.

    Keys are `encoder.0`, `decoder_self.0`, `cross.0` and so on, by layer; a list has one entry for each call.
    Weights are detached, and taken before dropout.
    """
    tape: dict[str, list[Tensor]] = {}
    handles = []
    for name, module in model.named_modules():
        if isinstance(module, AttentionWeights):
            stack, layer, attention = name.split(".")[:3]  # "encoder.0.self_attention.attention.weights"
            record = tape.setdefault(f"{KINDS[stack, attention]}.{layer}", [])
            handles.append(module.register_forward_hook(_appender(record)))
    try:
        yield tape
    finally:
        for handle in handles:
            handle.remove()


def _appender(record: list[Tensor]):  # type: ignore[no-untyped-def]
    def append(_module: nn.Module, _inputs: object, weights: Tensor) -> None:
        record.append(weights.detach())

    return append
