"""The tables and the picture of docs/scaling.md, from the rates that `exchange.py` measured, by `scaling_model.py`.

python benchmarks/scaling.py     # renews them in the document, and prints the tables
"""

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from scaling_model import (
    ETHERNET,
    MODELS,
    Link,
    enlarged,
    exchange_seconds,
    exchanges_seconds,
    loopback,
    slowing_of,
    step_seconds,
    tokens_per_second,
    work_of,
)

from passerelle.evaluation.heatmaps import save_png

ROOT = Path(__file__).resolve().parents[1]
WORKERS = (1, 2, 4, 8, 16, 32, 64)
MICRO_BATCHES = 64
"""Of the large step: 64 times 1,024 padded tokens."""


GPU_LINKS = {
    "NVLink 4, 450 GB/s": 450e9,
    "NVLink 3, 300 GB/s": 300e9,
    "PCIe 4 x16, 32 GB/s": 32e9,
    "100 Gbit/s": 12.5e9,
    "10 Gbit/s": 1.25e9,
}
"""Published rates of one direction, bytes a second; not measured."""


def all_reduce_table(measured: dict[str, Any]) -> str:
    """Milliseconds of gloo's all-reduce by size and processes, and the links that fit them."""
    numbers = list(measured["seconds by processes"])
    rows = [["all-reduce of", *(f"{number} processes" for number in numbers)]]
    for index, size in enumerate(measured["bytes"]):
        name = f"{size // 2**20} MB" if size >= 2**20 else f"{size // 2**10} KB"
        times = (measured["seconds by processes"][number][index] for number in numbers)
        rows.append([name, *(f"{1000 * time:.2f} ms" for time in times)])
    links = [loopback(measured, int(number)) for number in numbers]
    rows.append(["latency of a hop", *(f"{1000 * link.latency:.2f} ms" for link in links)])
    rows.append(["bandwidth", *(f"{link.bandwidth / 1e9:.2f} GB/s" for link in links)])
    return markdown(rows)


def with_two_workers(measured: dict[str, Any]) -> dict[str, Any]:
    """The models of which not one worker alone was measured."""
    return {name: steps for name, steps in measured["steps"].items() if "2 workers" in steps["seconds"]}


def check_table(measured: dict[str, Any], link: Link) -> str:
    """Predicted and measured target tokens a second of 1 and 2 workers."""
    rows = [["model", "parameters", "1 worker", "2, predicted", "2, measured", "predicted / measured"]]
    for name, steps in with_two_workers(measured).items():
        number, two = steps["micro-batches per step"], steps["seconds"]["2 workers"]
        predicted = [tokens_per_second(work_of(steps), number, workers, link) for workers in (1, 2)]
        found = two["tokens per step"] / two["step"]
        rates = (f"{rate:,.0f}" for rate in (*predicted, found))
        rows.append([name, f"{steps['parameters'] / 1e6:.1f} M", *rates, f"{predicted[1] / found:.2f}"])
    return markdown(rows)


def parts_table(measured: dict[str, Any], link: Link) -> str:
    """Where a step of 2 workers went, in milliseconds, and what the formula says of it."""
    rows = [
        [
            "model",
            "micro-batches",
            "waiting",
            "optimisers and rest",
            "whole step",
            "exchange",
            "by the formula",
        ]
    ]
    rows[0] += ["exchange's share", "slower beside another"]
    for name, steps in with_two_workers(measured).items():
        two = steps["seconds"]["2 workers"]
        predicted = exchanges_seconds(work_of(steps), 2, link)
        times = [two["compute"], two["wait"], two["rest"], two["step"], two["exchange"], predicted]
        rows.append(
            [
                name,
                *(f"{1000 * time:.0f}" for time in times),
                f"{two['exchange'] / two['step']:.1%}",
                f"{slowing_of(steps) - 1:.0%}",
            ]
        )
    return markdown(rows)


def share_table(measured: dict[str, Any]) -> str:
    """The exchange's share of a step of 2 workers, by micro-batches a worker."""
    numbers = (1, 2, 4, 8, 16, 32)
    links = {"loopback": loopback(measured["all_reduce"], 2), **ETHERNET}
    rows = [["model", "link", *(str(number) for number in numbers)]]
    for name, steps in measured["steps"].items():
        work = work_of(steps)
        for link_name, link in links.items():
            exchange = exchanges_seconds(work, 2, link)
            shares = (exchange / step_seconds(work, 2 * number, 2, link) for number in numbers)
            rows.append([name, link_name, *(f"{share:.1%}" for share in shares)])
    return markdown(rows)


def overlap_table(measured: dict[str, float]) -> str:
    """Milliseconds of a micro-batch and of an all-reduce of the default model's gradient, in turn and at once."""
    saved = measured["in turn"] - measured["at once"]
    rows = [["micro-batch", "exchange", "one after the other", "at once", "saved"]]
    times = (measured["compute"], measured["exchange"], measured["in turn"], measured["at once"], saved)
    return markdown([*rows, [f"{1000 * time:.0f} ms" for time in times]])


def bound_table(measured: dict[str, Any]) -> str:
    """The most that overlap could save of the default step of 2 workers, by the formula."""
    links = {"loopback": loopback(measured["all_reduce"], 2), **ETHERNET}
    rows = [["model", "ready before the backward pass ends", *links]]
    for name, steps in measured["steps"].items():
        work, (sizes, vocab_size) = work_of(steps), MODELS[name]
        early = 1.0 - 4 * vocab_size * sizes["d_model"] / work.gradient_bytes
        shares = []
        for link in links.values():
            hidden = min(early * exchange_seconds(work.gradient_bytes, 2, link), 2 / 3 * work.compute)
            shares.append(f"{hidden / step_seconds(work, steps['micro-batches per step'], 2, link):.1%}")
        rows.append([name, f"{early:.0%} of the gradient", *shares])
    return markdown(rows)


def growth_table(measured: dict[str, Any]) -> str:
    """Target tokens a second by workers, each on a machine of its own, with steps of MICRO_BATCHES."""
    rows = [["model", "network", *(f"{workers}" for workers in WORKERS), "at 64, of 64 times one"]]
    works = {name: work_of(steps) for name, steps in measured["steps"].items()}
    if "base" in works and "big" not in works:
        works["big, supposed from base"] = enlarged(works["base"], "base", "big")
    for name, work in works.items():
        for network, link in ETHERNET.items():
            rates = [tokens_per_second(work, MICRO_BATCHES, workers, link) for workers in WORKERS]
            share = rates[-1] / rates[0] / WORKERS[-1]
            rows.append([name, network, *(f"{rate:,.0f}" for rate in rates), f"{share:.0%}"])
    return markdown(rows)


def gpu_table() -> str:
    """Tokens of a step, both sides, each GPU must compute for the exchange to take a tenth of the compute's time."""
    rows = [["GPU computes, FLOP/s", *GPU_LINKS]]
    for flops in (50e12, 100e12, 200e12, 400e12):
        tokens = (10 * 4 / 3 * flops / bandwidth for bandwidth in GPU_LINKS.values())
        rows.append([f"{flops / 1e12:.0f} T", *(f"{count:,.0f}" for count in tokens)])
    return markdown(rows)


def draw(measured: dict[str, Any], path: Path) -> None:
    """Growth with workers of the first model, and the exchange's share of a step of each."""
    figure = Figure(figsize=(10.0, 4.0), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    (first, steps), *_ = measured["steps"].items()
    work = work_of(steps)
    for network, link in ETHERNET.items():
        rates = [tokens_per_second(work, MICRO_BATCHES, workers, link) for workers in WORKERS]
        left.plot(WORKERS, [rate / rates[0] for rate in rates], label=f"{network} (assumed)")
    one, two = (steps["seconds"][setting] for setting in ("1 worker", "2 workers"))
    link, number = loopback(measured["all_reduce"], 2), steps["micro-batches per step"]
    slow, fast = (tokens_per_second(work, number, workers, link) for workers in (1, 2))
    left.plot([1, 2], [1.0, fast / slow], "k--", label=f"loopback, steps of {number} micro-batches")
    left.plot(WORKERS, WORKERS, ":", color="grey", label="n times one")
    left.plot([1, 2], [1.0, one["step"] / two["step"]], "ko", label="the same, measured")
    left.set(xscale="log", yscale="log", xlabel="workers", ylabel="rate, as a multiple of one worker's")
    left.set_title(f"{first}, steps of {MICRO_BATCHES} micro-batches", fontsize=10)
    numbers = [2**power for power in range(7)]
    for index, (name, steps) in enumerate(measured["steps"].items()):
        work = work_of(steps)
        exchange = exchanges_seconds(work, 2, link)
        shares = [exchange / step_seconds(work, 2 * number, 2, link) for number in numbers]
        right.plot(numbers, shares, color=f"C{index}", label=name)
        if two := steps["seconds"].get("2 workers"):
            per_worker = steps["micro-batches per step"] / 2
            right.plot(per_worker, two["exchange"] / two["step"], "o", color=f"C{index}")
    right.set(
        xscale="log",
        yscale="log",
        xlabel="micro-batches a worker and step",
        ylabel="exchange's share of a step",
    )
    right.set_title("2 workers over loopback; points: measured", fontsize=10)
    for axes, ticks in ((left, WORKERS), (right, numbers)):
        axes.set_xticks(ticks, map(str, ticks))
        axes.minorticks_off()
        axes.legend(fontsize=8)
    left.set_yticks(WORKERS, map(str, WORKERS))
    right.yaxis.set_major_formatter("{x:.1%}")
    save_png(figure, path)


def renewed(text: str, tables: dict[str, str]) -> str:
    """The document with each table between `<!-- name -->` and `<!-- end -->` exchanged."""
    for name, table in tables.items():
        before, found, rest = text.partition(f"<!-- {name} -->\n")
        assert found, f"docs/scaling.md has no place for {name}"
        _, end, after = rest.partition("<!-- end -->")
        text = f"{before}{found}{table}\n{end}{after}"
    return text


def markdown(rows: list[list[str]]) -> str:
    """A table; the first row is its head."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Renew the document and its picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rates", type=Path, default=ROOT / "benchmarks/results/exchange.json")
    parser.add_argument("--document", type=Path, default=ROOT / "docs/scaling.md")
    parser.add_argument("--picture", type=Path, default=ROOT / "docs/images/scaling.png")
    arguments = parser.parse_args()
    measured = json.loads(arguments.rates.read_text(encoding="utf-8"))
    link = loopback(measured["all_reduce"], 2)
    tables = {
        "all-reduce": all_reduce_table(measured["all_reduce"]),
        "check": check_table(measured, link),
        "parts": parts_table(measured, link),
        "overlap": overlap_table(measured["overlap"]),
        "bound": bound_table(measured),
        "shares": share_table(measured),
        "growth": growth_table(measured),
        "gpus": gpu_table(),
    }
    text = renewed(arguments.document.read_text(encoding="utf-8"), tables)
    arguments.document.write_text(text, encoding="utf-8")
    print("\n\n".join(tables.values()))
    draw(measured, arguments.picture)


if __name__ == "__main__":
    main()
