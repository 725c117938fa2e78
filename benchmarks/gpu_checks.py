"""Whether a device computes rightly, how fast it multiplies, and when the host waits for it; for `gpu.py`."""

import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from passerelle.config import ModelConfig
from passerelle.data.batch import Batch
from passerelle.models import build_model
from passerelle.training.step import batch_sums

TOLERANCES = {"float32": (1e-5, 1e-3), "bfloat16": (1e-2, 5e-2)}
"""Relative error of the loss, and of the gradient as a vector, against float64."""


def correctness(config: ModelConfig, vocab_size: int, batch: Batch, device: torch.device) -> dict[str, Any]:
    """Relative errors of loss and gradient on the device, without dropout, and whether they are within TOLERANCES."""
    torch.manual_seed(0)
    model = build_model(config.model_copy(update={"dropout": 0.0}), vocab_size)
    weights = model.state_dict()
    model.double()
    memory = model.encode(batch.source, batch.source_lengths)
    logits, _ = model.decode(batch.target_in, memory, model.start(memory))
    real = logits.flatten(0, 1)[batch.target_positions]
    loss = nn.functional.cross_entropy(real, batch.target_out, reduction="sum", label_smoothing=0.1)
    loss.backward()
    expected = gradient_of(model)
    result: dict[str, Any] = {}
    for name, (loss_tolerance, gradient_tolerance) in TOLERANCES.items():
        model = build_model(config.model_copy(update={"dropout": 0.0}), vocab_size)
        model.load_state_dict(weights)
        model.to(device, getattr(torch, name))
        ours, _ = batch_sums(model, batch.to(device), 0.1)
        ours.backward()
        loss_error = abs(ours.item() / loss.item() - 1.0)
        gradient_error = ((gradient_of(model) - expected).norm() / expected.norm()).item()
        result[name] = {
            "loss, relative error": loss_error,
            "gradient, relative error": gradient_error,
            "is right": loss_error <= loss_tolerance and gradient_error <= gradient_tolerance,
        }
    return result


def gradient_of(model: nn.Module) -> torch.Tensor:
    """One vector, float64, on the CPU."""
    gradients = [parameter.grad for parameter in model.parameters()]
    return torch.cat([gradient.flatten().cpu().double() for gradient in gradients if gradient is not None])


def matmul_flops(device: torch.device, size: int, num_calls: int = 20) -> float:
    """Floating-point operations a second of a square product in bfloat16; the best of three."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    times = []
    for _ in range(4):
        synchronise(device)
        began = time.perf_counter()
        for _ in range(num_calls):
            a @ b
        synchronise(device)
        times.append(time.perf_counter() - began)
    return 2.0 * size**3 * num_calls / min(times[1:])


def synchronise(device: torch.device) -> None:
    """Wait until the device has done all it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds(run: Callable[[], object], device: torch.device) -> float:
    """Of run, and of what it leaves the device to do."""
    synchronise(device)
    began = time.perf_counter()
    run()
    synchronise(device)
    return time.perf_counter() - began


def host_waits(run: Callable[[], object]) -> dict[str, int]:
    """Where run made the host wait for the GPU, and how often: file and line -> times."""
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    waits = [warning for warning in caught if "synchronizing CUDA operation" in str(warning.message)]
    return Counter(f"{Path(warning.filename).name}:{warning.lineno}" for warning in waits)
