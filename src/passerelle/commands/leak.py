"""`passerelle leak`: what test and training sentences share, and what a careless split would make of the score."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passerelle.commands.loading import add_model, load

if TYPE_CHECKING:
    from passerelle.evaluation.leak_score import LeakScore

SIDES = {"test": "test", "valid": "validation", "random": "random rows"}
KINDS = {
    "shared_source": "same source",
    "shared_target": "same target",
    "shared": "same, either side",
    "near_source": "near source",
    "near_target": "near target",
    "near": "near, either side",
}


def add(commands: Any) -> None:
    """The command's arguments."""
    leak = commands.add_parser(
        "leak",
        help="show what test and training sentences share, and what a random split would score",
        description="Count the test sentences that training knows, or nearly knows; then estimate what the model "
        "would score on a test set of rows drawn at random, most of whose sentences it knows.",
    )
    leak.add_argument(
        "--prepared", type=Path, help="folder of the split corpus (data/prepared of the model's pipeline)"
    )
    add_model(leak)
    leak.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    from tqdm import tqdm

    from passerelle.evaluation.leak_score import leak_score
    from passerelle.evaluation.leaks import leak_report, read_splits

    loaded, decoding = load(arguments.model)
    prepared = arguments.prepared or _prepared(arguments.model)
    splits = read_splits(prepared)
    report = leak_report(splits)
    print("\n".join(_report_lines(report)), flush=True)
    shared = report["random_shared_share"]
    with tqdm(desc="translating", unit=" sentences", disable=None, file=sys.stderr) as bar:
        score = leak_score(loaded, arguments.model, splits, shared, decoding, bar.update)
    print("\n" + "\n".join(_score_lines(score, shared)))


def _prepared(model: Path) -> Path:
    """Of the pipeline that the model's folder, or the folder of its variant, stands in."""
    above = model.resolve().parent
    folders = [folder / "data" / "prepared" for folder in (above, above.parent)]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def _report_lines(report: Mapping[str, float]) -> list[str]:
    near = f"{report['near_percent']:.0f} %"
    lines = [f"{'':20}" + "".join(f"{title:>18}" for title in SIDES.values())]
    counts = "".join(f"{report[f'{name}_sentences']:>18,.0f}" for name in SIDES)
    lines.append(f"{'sentences':20}{counts}")
    for kind, title in KINDS.items():
        cells = [f"{report[f'{name}_{kind}']:,.0f}  {report[f'{name}_{kind}_share']:6.1%}" for name in SIDES]
        lines.append(f"{title:20}" + "".join(f"{cell:>18}" for cell in cells))
    return [
        "Sentences that training has too",
        "",
        *lines,
        "",
        f"Compared by letters and digits, case-folded; near: at least {near} alike (Indel similarity).",
        "random rows: the same pairs, had their rows been dealt out at random.",
    ]


def _score_lines(score: "LeakScore", shared: float) -> list[str]:
    names = {
        "leaked": "rows that share a sentence with another, trained on",
        "held_out": "rows that share a sentence with another, held out",
        "alone": "rows that share none, held out",
    }
    lines = ["BLEU of the model, each row against its own translation alone", ""]
    for kind, name in names.items():
        lines.append(_line(name, score.bleu.get(kind), f"{score.num_rows[kind]:,} rows"))
    percent = f"{shared:.1%} of them share a sentence"
    lines.append(_line("rows at random, as a random split would score them", score.random_rows, percent))
    lines.append(_line("the same rows without the leak", score.without_leak, "what the model can do"))
    return [
        *lines,
        "",
        "The model was trained on the leaked pairs themselves; a random split would hold each back and show only",
        "its like. So the leaked score is an upper bound; retraining on a random split would say exactly.",
    ]


def _line(name: str, bleu: float | None, note: str) -> str:
    value = "no rows" if bleu is None else f"{bleu:.1f}"
    return f"{name:52}{value:>8}   {note}"
