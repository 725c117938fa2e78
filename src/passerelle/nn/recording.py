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

    Keys are `encoder.0`, `decoder_self.0`, `cross.0` and so on, by layer; a list has one entry for each call. A
    recurrent decoder has `cross.0` alone, with H = 1, and calls it once a step, with Q = 1.
    Weights are detached, and taken before dropout.
    """
    tape: dict[str, list[Tensor]] = {}
    handles = []
    for name, module in model.named_modules():
        if isinstance(module, AttentionWeights):
            record = tape.setdefault(place(name), [])
            handles.append(module.register_forward_hook(_appender(record)))
    try:
        yield tape
    finally:
        for handle in handles:
            handle.remove()


def place(name: str) -> str:
    """Kind and layer of a module of weights: `encoder.1.self_attention.attention.weights` -> `encoder.1`.

    A recurrent model has `cross_attention.weights` alone, which is `cross.0`.
    """
    first, *rest = name.split(".")
    if first == "cross_attention":  # of the whole decoder
        return "cross.0"
    layer, attention = rest[:2]
    return f"{KINDS[first, attention]}.{layer}"


def _appender(record: list[Tensor]):  # type: ignore[no-untyped-def]
    def append(_module: nn.Module, _inputs: object, weights: Tensor) -> None:
        record.append(weights.detach() if weights.dim() == 4 else weights.detach().unsqueeze(1))  # one head

    return append
