"""How throughput grows with workers, predicted from the rates that `exchange.py` measured.

A step of M micro-batches by n workers takes

    ceil(M / n) * compute + fixed + directions / n + exchange(gradient bytes) + exchange(direction bytes)
    exchange(bytes) = 2 (n - 1) * latency + 2 (n - 1) / n * bytes / bandwidth      (a ring; nothing for n = 1)

where compute is a micro-batch's, directions Muon's matrix products, and fixed what each worker does for itself.
"""

import math
import statistics
from dataclasses import dataclass
from typing import Any

MODELS = {
    "192 wide": ({"d_model": 192, "num_layers": 3, "num_heads": 4, "d_ff": 768}, 8000),
    "256 wide": ({"d_model": 256, "num_layers": 3, "num_heads": 4, "d_ff": 1024}, 8000),
    "base": ({"d_model": 512, "num_layers": 6, "num_heads": 8, "d_ff": 2048}, 32000),
    "big": ({"d_model": 1024, "num_layers": 6, "num_heads": 16, "d_ff": 4096}, 32000),
}
"""Name -> sizes of a Transformer, and its vocabulary."""


@dataclass(frozen=True)
class Link:
    """What joins the workers."""

    bandwidth: float
    """Bytes a second that a worker sends, while it receives as many."""
    latency: float
    """Seconds of one hop of the ring."""


ETHERNET = {
    f"{gigabits} Gbit/s": Link(0.9 * gigabits * 1e9 / 8, latency)
    for gigabits, latency in ((1, 1e-4), (10, 5e-5), (100, 2e-5))
}
"""Assumed, not measured: nine tenths of the nominal rate, and these latencies."""


@dataclass(frozen=True)
class Work:
    """What a step of one model has to do, on one core a worker."""

    compute: float
    """Seconds of a micro-batch's forward and backward pass."""
    directions: float
    """Seconds of Muon's matrix products, which workers share."""
    fixed: float
    """Seconds of what every worker does for itself."""
    gradient_bytes: int
    direction_bytes: int
    tokens: float
    """Target tokens of a micro-batch."""


def exchange_seconds(num_bytes: int, num_workers: int, link: Link) -> float:
    """Of a ring all-reduce (Patarasuk & Yuan 2009)."""
    hops = num_workers - 1
    return 2 * hops * link.latency + 2 * hops / num_workers * num_bytes / link.bandwidth


def exchanges_seconds(work: Work, num_workers: int, link: Link) -> float:
    """Of a step's gradient and, where there are any, directions."""
    sizes = [size for size in (work.gradient_bytes, work.direction_bytes) if size]
    return sum(exchange_seconds(size, num_workers, link) for size in sizes)


def step_seconds(work: Work, num_micro_batches: int, num_workers: int, link: Link) -> float:
    """Of a step."""
    return own_seconds(work, num_micro_batches, num_workers) + exchanges_seconds(work, num_workers, link)


def own_seconds(work: Work, num_micro_batches: int, num_workers: int) -> float:
    """Of what the worker with the most micro-batches does in a step."""
    compute = math.ceil(num_micro_batches / num_workers) * work.compute
    return compute + work.fixed + work.directions / num_workers


def tokens_per_second(work: Work, num_micro_batches: int, num_workers: int, link: Link) -> float:
    """Target tokens, by all workers."""
    return num_micro_batches * work.tokens / step_seconds(work, num_micro_batches, num_workers, link)


def loopback(measured: dict[str, Any], num_processes: int) -> Link:
    """The link that fits gloo's all-reduce among so many processes: latency by the small sizes, bandwidth by large."""
    seconds = measured["seconds by processes"][str(num_processes)]
    times = list(zip(measured["bytes"], seconds, strict=True))
    hops = num_processes - 1
    latency = statistics.median(time for size, time in times if size <= 2**16) / (2 * hops)
    sent = [
        2 * hops / num_processes * size / (time - 2 * hops * latency) for size, time in times if size >= 2**22
    ]
    return Link(statistics.median(sent), latency)


def work_of(measured: dict[str, Any]) -> Work:
    """What one worker was measured to do alone, and as rank 0 of so many that it made hardly a direction."""
    alone, one_of_many = measured["seconds"]["1 worker"], measured["seconds"]["one of many"]
    number = measured["micro-batches per step"]
    directions = max(0.0, alone["rest"] - one_of_many["rest"]) if measured["direction bytes"] else 0.0
    return Work(
        compute=alone["compute"] / number,
        directions=directions,
        fixed=alone["rest"] - directions,
        gradient_bytes=measured["gradient bytes"],
        direction_bytes=measured["direction bytes"],
        tokens=alone["tokens per step"] / number,
    )


def slowing_of(measured: dict[str, Any]) -> float:
    """How much longer a step takes while another process, which it does not wait for, loads the other core."""
    apart: float = measured["seconds"]["2 apart"]["step"]
    return apart / measured["seconds"]["1 worker"]["step"]


def enlarged(work: Work, name: str, larger: str) -> Work:
    """The work of a larger model of MODELS, supposed from that of a measured one.

    Micro-batches and what each worker does for itself grow with the parameters, Muon's products with those within the
    network times their width.
    """
    few, inner_few, narrow = _counts(name)
    many, inner_many, wide = _counts(larger)
    growth, inner_growth = many / few, inner_many / inner_few
    return Work(
        compute=work.compute * growth,
        directions=work.directions * inner_growth * wide / narrow,
        fixed=work.fixed * growth,
        gradient_bytes=round(work.gradient_bytes * growth),
        direction_bytes=round(work.direction_bytes * inner_growth),
        tokens=work.tokens,
    )


def _counts(name: str) -> tuple[int, int, int]:
    """Parameters but for biases and norms, those of them within the network, and the width."""
    sizes, vocab_size = MODELS[name]
    width = sizes["d_model"]
    inner = sizes["num_layers"] * (12 * width**2 + 4 * width * sizes["d_ff"])
    return inner + vocab_size * width, inner, width
