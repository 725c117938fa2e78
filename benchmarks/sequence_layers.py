"""A convolution, a recurrent layer and self-attention on one sequence: time and path length against its length.

    python benchmarks/sequence_layers.py [--longest 2048] [--width 64] [--kernel 5] [--rounds 15] [--threads 1]

Time is that of forward and backward of one layer, all layers and lengths by turns. Path length is how many
operations, each waiting for the one before, lead from the first token to the last output. It is found by
autograd: stacked convolutions until the gradient reaches the first token, steps of the recurrent cell likewise.
Prints two tables, and draws docs/images/sequence_layers.png.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from itertools import count, product
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn import functional

from passerelle.evaluation.heatmaps import save_png
from passerelle.identity import identity
from passerelle.nn.attention import DotProductAttention

ROOT = Path(__file__).resolve().parents[1]
COMPLEXITIES = {
    "convolution": ("O(k n d²)", "O(1)"),
    "recurrent (GRU)": ("O(n d²)", "O(n)"),
    "self-attention": ("O(n² d)", "O(1)"),
}
"""Layer -> operations, and how many of them must wait for one another."""
DILATED = "convolutions, dilation 1, 2, 4, …"
PATHS = {"convolution": "O(n / k)", DILATED: "O(log n)", "recurrent (GRU)": "O(n)", "self-attention": "O(1)"}
"""Layer -> longest path between two tokens."""
Layer = Callable[[Tensor], Tensor]
"""(1, T, D) -> (1, T, D)."""


def layers(width: int, kernel: int) -> dict[str, Layer]:
    """The three that are timed; self-attention is without projections, as the complexities count it."""
    recurrent, attention = nn.GRU(width, width, batch_first=True), DotProductAttention(0.0)
    return {
        "convolution": convolution(width, kernel, 1),
        "recurrent (GRU)": lambda x: recurrent(x)[0],
        "self-attention": lambda x: attention(x, x, x, None),
    }


def convolution(width: int, kernel: int, dilation: int) -> Layer:
    """Centred; as many outputs as inputs."""
    module = nn.Conv1d(width, width, kernel, padding="same", dilation=dilation)
    return lambda x: module(x.transpose(1, 2)).transpose(1, 2)


def recurrent_step(width: int) -> Layer:
    """One step at all places at once: the state before, moved by a place, and a token give the next state."""
    cell, tokens = nn.GRUCell(width, width), torch.randn(width)

    def step(states: Tensor) -> Tensor:
        before = functional.pad(states[0, :-1], (0, 0, 1, 0))
        return cell(tokens.expand_as(before), before)[None]

    return step


def path_length(layer_at: Callable[[int], Layer], num_tokens: int, width: int) -> int:
    """Smallest number of layers through which the last output depends on the first of the tokens.

    Goes backward one layer at a time and keeps only where the gradient is not zero, since its size would
    vanish. `layer_at(depth)` is the layer at that depth, 0 the last.
    """
    depends = torch.zeros(1, num_tokens, width)
    depends[:, -1] = 1.0
    for depth in count():
        x = torch.randn(1, num_tokens, width, requires_grad=True)
        (gradient,) = torch.autograd.grad(layer_at(depth)(x), x, depends)
        depends = (gradient != 0).float()
        if depends[:, 0].any():
            return depth + 1
    raise AssertionError("a layer that never reaches the first token")


def path_lengths(num_tokens: int, kernel: int, width: int = 4) -> dict[str, int]:
    """Of each layer at this sequence length; the width does not matter."""
    plain, step, attention = convolution(width, kernel, 1), recurrent_step(width), layers(width, kernel)
    return {
        "convolution": path_length(lambda depth: plain, num_tokens, width),
        DILATED: path_length(lambda depth: convolution(width, kernel, 2**depth), num_tokens, width),
        "recurrent (GRU)": 1
        + path_length(lambda depth: step, num_tokens, width),  # 1: a token enters the state
        "self-attention": path_length(lambda depth: attention["self-attention"], num_tokens, width),
    }


def milliseconds(layer: Layer, x: Tensor) -> float:
    """Of one forward and backward pass."""
    began = time.perf_counter()
    layer(x).sum().backward()
    return 1000 * (time.perf_counter() - began)


def measure(lengths: list[int], width: int, kernel: int, num_rounds: int) -> dict[str, list[float]]:
    """Median milliseconds of each layer at each length; the first round warms up and is left out.

    Every round has another order, so that what interrupts the machine regularly meets none more than another.
    """
    timed = layers(width, kernel)
    inputs = {length: torch.randn(1, length, width, requires_grad=True) for length in lengths}
    times: dict[tuple[str, int], list[float]] = {case: [] for case in product(timed, lengths)}
    generator = random.Random(0)
    for _ in range(num_rounds + 1):
        for name, length in generator.sample(list(times), len(times)):
            times[name, length].append(milliseconds(timed[name], inputs[length]))
    return {name: [statistics.median(times[name, length][1:]) for length in lengths] for name in timed}


def table(heads: list[str], lengths: list[int], rows: dict[str, list[str]]) -> str:
    """Markdown; a row holds one text for each of `heads` and of the lengths."""
    titles = ["layer", *heads, *(f"n = {length}" for length in lengths)]
    lines = [titles, ["---"] * len(titles), *([name, *texts] for name, texts in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(lengths: list[int], times: dict[str, list[float]], paths: dict[str, list[int]], path: Path) -> None:
    """Times and path lengths side by side, on logarithmic axes."""
    figure = Figure(figsize=(10.0, 4.0), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = {name: f"C{number}" for number, name in enumerate(paths)}
    for name, medians in times.items():
        left.plot(lengths, medians, "o-", color=colours[name], label=f"{name}, {COMPLEXITIES[name][0]}")
    for name, counts in paths.items():
        right.plot(lengths, counts, "o-", color=colours[name], label=f"{name}, {PATHS[name]}")
    for axes, label in ((left, "forward and backward, ms"), (right, "longest path, operations in sequence")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(lengths, map(str, lengths))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("sequence length n")
        axes.set_ylabel(label)
        axes.legend(fontsize=8)
    save_png(figure, path)


def main() -> None:
    """Print the machine and the tables; draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--longest", type=int, default=2048)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--kernel", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--picture", type=Path, default=ROOT / "docs/images/sequence_layers.png")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    lengths = [2**power for power in range(4, arguments.longest.bit_length())]
    times = measure(lengths, arguments.width, arguments.kernel, arguments.rounds)
    measured = [path_lengths(length, arguments.kernel) for length in lengths]
    paths = {name: [one[name] for one in measured] for name in measured[0]}
    tags = identity(ROOT)
    machine = ", ".join(tags[key] for key in ("machine.processor", "machine.platform", "version.torch"))
    print(f"{machine}; threads: {arguments.threads}, d = {arguments.width}, k = {arguments.kernel}\n")
    rows = {
        name: [*COMPLEXITIES[name][:2], *(f"{median:.2f}" for median in medians)]
        for name, medians in times.items()
    }
    print(table(["operations", "of these in sequence"], lengths, rows), end="\n\n")
    rows = {name: [PATHS[name], *map(str, counts)] for name, counts in paths.items()}
    print(table(["longest path"], lengths, rows))
    draw(lengths, times, paths, arguments.picture)


if __name__ == "__main__":
    main()
