"""Which arithmetic the forward and backward pass use."""

from typing import Literal

import torch


def compute_dtype(precision: Literal["auto", "fp32", "bf16"], device: torch.device) -> torch.dtype:
    """`auto` is bfloat16 where the hardware multiplies it (NVIDIA Ampere and later; CPUs with AVX512-BF16 or AMX)."""
    if precision == "fp32":
        return torch.float32
    if precision == "bf16":
        return torch.bfloat16
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    capabilities = torch.cpu.get_capabilities()
    return (
        torch.bfloat16 if capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") else torch.float32
    )
