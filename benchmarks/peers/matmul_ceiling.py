"""The machine's rate of matrix products in torch: the best of some shapes, in bfloat16 and in float32.

python benchmarks/peers/matmul_ceiling.py [--seconds 0.5] [--threads 2]
"""

import argparse
import json
import time

import torch

SHAPES = (
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 1024, 1024),
    (2048, 256, 1024),
    (4096, 1024, 8192),
)
"""Rows, inner, columns: from those of the layers to large ones."""


def flops_per_second(shape: tuple[int, int, int], dtype: torch.dtype, seconds: float) -> float:
    """Floating-point operations (a multiplication and an addition are two) in a second, after a warm-up."""
    rows, inner, columns = shape
    left, right = torch.randn(rows, inner, dtype=dtype), torch.randn(inner, columns, dtype=dtype)
    product = left @ right
    count, began = -2, time.perf_counter()
    while count <= 0 or time.perf_counter() - began < seconds:
        if count == 0:
            began = time.perf_counter()
        torch.mm(left, right, out=product)
        count += 1
    return 2 * rows * inner * columns * count / (time.perf_counter() - began)


def main() -> None:
    """Print, for each arithmetic, the best shape and its rate in GFLOP/s, as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="for each shape")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    result = {}
    for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
        rates = {shape: flops_per_second(shape, dtype, arguments.seconds) for shape in SHAPES}
        best = max(rates, key=rates.__getitem__)
        result[name] = {"gflops": round(rates[best] / 1e9), "shape": list(best)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
