"""Parts of a training step on a CPU, each against torch's own, forward and backward, by turns.

    python benchmarks/parts.py [--rounds 15] [--threads 1]

Sizes are those of a micro-batch of the default parameters: 190 sentences of 11 tokens, 256 wide, 8,000 words.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from passerelle.identity import identity
from passerelle.nn.attention import DotProductAttention
from passerelle.nn.dropout import Dropout
from passerelle.training.loss import smoothed_cross_entropy

B, T, D, H, V = 190, 11, 256, 4, 8000
Part = tuple[Callable[[], Tensor], Callable[[], Tensor]]


def parts(dtype: torch.dtype) -> dict[str, Part]:
    """Ours and torch's, as functions that give a scalar to differentiate."""
    x = torch.randn(B * T, D).to(dtype).requires_grad_()
    heads = torch.randn(B, H, T, D // H).to(dtype).requires_grad_()
    mask = (torch.arange(T) < torch.randint(1, T + 1, (B, 1)))[:, None, None]
    weight = (torch.randn(V, D) / D**0.5).to(dtype).requires_grad_()
    target = torch.randint(V, (B * T,))
    attention, dropout = DotProductAttention(0.0).train(), Dropout(0.1).train()
    return {
        "attention": (
            lambda: attention(heads, heads, heads, mask).sum(),
            lambda: functional.scaled_dot_product_attention(heads, heads, heads, mask).sum(),
        ),
        "dropout": (lambda: dropout(x).sum(), lambda: functional.dropout(x, 0.1).sum()),
        "output layer and loss": (
            lambda: smoothed_cross_entropy(x, weight, target, 0.1)[0],
            lambda: functional.cross_entropy(
                functional.linear(x, weight).float(), target, label_smoothing=0.1, reduction="sum"
            ),
        ),
    }


def milliseconds(part: Callable[[], Tensor]) -> float:
    """Of one forward and backward pass."""
    began = time.perf_counter()
    part().backward()
    return 1000 * (time.perf_counter() - began)


def main() -> None:
    """Print the machine and the medians as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    tags = identity(Path(__file__).resolve().parents[1])
    result: dict[str, object] = {
        key: tags[key] for key in tags if key.startswith(("machine.", "version.torch"))
    }
    for dtype in (torch.bfloat16, torch.float32):
        for name, (ours, torchs) in parts(dtype).items():
            times = [(milliseconds(ours), milliseconds(torchs)) for _ in range(arguments.rounds + 2)][2:]
            result[f"{name}, {str(dtype).removeprefix('torch.')}"] = {
                "ours, ms": round(statistics.median(ours for ours, _ in times), 2),
                "torch's, ms": round(statistics.median(theirs for _, theirs in times), 2),
                "ratio": round(statistics.median(ours / theirs for ours, theirs in times), 3),
            }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
