"""What the benchmark of training speed makes of its measurements: medians and ratios, a table, a picture."""

import statistics
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from passerelle.evaluation.heatmaps import save_png
from passerelle.identity import identity

ARITHMETIC = ("avx2", "avx512_f", "avx512_bf16", "avx512_fp16", "amx_bf16")
"""What of a processor decides how fast it multiplies, as torch calls it."""
Spread = dict[str, float]
"""Median, lowest and highest of the rounds."""
Result = dict[str, dict[str, Any]]
"""By system."""


def spread(values: list[float], digits: int) -> Spread:
    named = {"median": statistics.median(values), "low": min(values), "high": max(values)}
    return {name: round(value, digits) if digits else round(value) for name, value in named.items()}


def summary(
    found: dict[str, list[dict[str, Any]]], ceilings: list[dict[str, Any]], ours: list[str]
) -> Result:
    """Of what each system and the matrix products measured, round by round; ours: names of our systems."""
    result: Result = {}
    rates = {name: [one["tokens"] / one["seconds"] for one in rounds] for name, rounds in found.items()}
    for name, rounds in found.items():
        result[name] = {
            "tokens per second": spread(rates[name], 0),
            "parameters": rounds[0]["parameters"],
        }
        if name in ours:
            gflops = [one["flops"] / one["seconds"] / 1e9 for one in rounds]
            result[name]["useful GFLOP/s"] = spread(gflops, 0)
            for kind in ("bf16", "fp32"):
                pairs = zip(gflops, ceilings, strict=True)
                shares = [rate / ceiling[kind]["gflops"] for rate, ceiling in pairs]
                result[name][f"share of the {kind} matrix product's rate"] = spread(shares, 3)
        else:
            result[name]["padding"] = rounds[0]["padding"]
            result[name]["times as fast"] = {
                one: spread([a / b for a, b in zip(rates[one], rates[name], strict=True)], 2) for one in ours
            }
    return result


def machine(root: Path) -> dict[str, Any]:
    """Processor and what of its arithmetic matters here, versions, commit."""
    kept = ("machine.", "version.torch", "version.python", "git.commit", "git.dirty")
    tags: dict[str, Any] = {name: tag for name, tag in identity(root).items() if name.startswith(kept)}
    has = torch.cpu.get_capabilities()
    tags["machine.arithmetic"] = [name for name in ARITHMETIC if has.get(name)]
    return tags


def table(result: Result, batches: dict[str, str], ours: list[str]) -> str:
    """Markdown; how many times as fast `ours` are, lowest and highest in brackets. batches: of each system."""
    titles = ["system", "batch", "target tokens/s", *(f"{one}, to it" for one in ours)]
    lines = [titles, ["---"] * len(titles)]
    for name, of in result.items():
        ratios = [of["times as fast"][one] if "times as fast" in of else None for one in ours]
        texts = [f"{one['median']:.2f} ({one['low']:.2f}–{one['high']:.2f})" if one else "" for one in ratios]
        lines.append([name, batches[name], f"{of['tokens per second']['median']:,}", *texts])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shares(result: Result, ours: list[str]) -> str:
    """A line for each of ours: useful operations a second, and their share of what matrix products reach."""
    lines = []
    for name in ours:
        rate, share = (
            result[name][key] for key in ("useful GFLOP/s", "share of the bf16 matrix product's rate")
        )
        lines.append(
            f"{name}: {rate['median']} useful GFLOP/s, {share['median']:.1%} of a bf16 matrix product's"
        )
    return "\n".join(lines)


def draw(result: Result, ours: list[str], path: Path) -> None:
    """A bar for each system, with a line from its lowest to its highest rate; the fastest on top."""
    names = sorted(result, key=lambda name: result[name]["tokens per second"]["median"])
    rates = [result[name]["tokens per second"] for name in names]
    medians, lows, highs = ([rate[which] for rate in rates] for which in ("median", "low", "high"))
    errors = [
        [m - low for m, low in zip(medians, lows, strict=True)],
        [h - m for m, h in zip(medians, highs, strict=True)],
    ]
    figure = Figure(figsize=(9.0, 0.32 * len(names) + 1.0), dpi=130, layout="constrained")
    axes = figure.subplots()
    colours = ["C0" if name in ours else "0.7" for name in names]
    axes.barh(names, medians, xerr=errors, color=colours, ecolor="0.2", capsize=2)
    for place, (median, high) in enumerate(zip(medians, highs, strict=True)):
        axes.text(high, place, f"  {median:,}", va="center", fontsize=8)
    axes.set_xlim(0, 1.1 * max(highs))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("target tokens per second in training, two cores")
    axes.tick_params(labelsize=8)
    save_png(figure, path)
