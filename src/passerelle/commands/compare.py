"""`passerelle compare`: which of two sets of translations is better, how surely, and where they differ."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passerelle.commands.loading import settings
from passerelle.stages import printable

if TYPE_CHECKING:
    from passerelle.evaluation.compare import Change, Comparison
    from passerelle.evaluation.translated import Translated

ORDER = (
    "A and B are each the first of these that there is: a translations.jsonl; a folder that holds one, such as "
    "evaluation; a Git revision or the name of a DVC experiment, whose evaluation DVC keeps; the id or "
    "fingerprint of an MLflow run. So ./main is a folder where refs/heads/main is a branch."
)


def add(commands: Any) -> None:
    """The command's arguments."""
    compare = commands.add_parser(
        "compare",
        help="compare the translations of two revisions, experiments, runs or files",
        description=f"Print the scores of two sets of translations of one test set, with the paired bootstrap's "
        f"significance, and the sentences that changed most. {ORDER}",
        epilog="bootstrap_samples and seed are those of the section evaluation of params.yaml here; without that "
        "file, the defaults.",
    )
    compare.add_argument("first", metavar="A")
    compare.add_argument("second", metavar="B")
    compare.add_argument(
        "--evaluation",
        type=Path,
        default=Path("evaluation"),
        help="folder that stage evaluate writes, of a revision (evaluation)",
    )
    compare.add_argument(
        "--changed", type=int, default=10, metavar="N", help="sentences to print, of those that differ (10)"
    )
    compare.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    from passerelle.commands.finding import find_translated
    from passerelle.evaluation.compare import compare

    evaluation = settings(Path("params.yaml")).evaluation
    first = find_translated(arguments.first, arguments.evaluation)
    second = find_translated(arguments.second, arguments.evaluation)
    comparison = compare(first, second, evaluation.bootstrap_samples, evaluation.seed)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    print(printable(f"A  {first.name}\nB  {second.name}\n"))
    _print_scores(comparison)
    _print_counts(comparison, first)
    if changes := comparison.changes[: max(0, arguments.changed)]:
        print("the most changed, with their number in the test set, from 0:")
    for change in changes:
        _print_change(change, first)
    print()
    for score in comparison.scores:
        print(f"{score.metric}  {score.signature}")
    print(comparison.interval)


def _print_scores(comparison: "Comparison") -> None:
    print(f"{'':17}{'A':>8}{'B':>8}{'B - A':>8}   {'95 % of B - A':<16}{'p':>7}")
    for score in comparison.scores:
        name = f"{score.metric} (low is good)" if score.metric == "TER" else score.metric
        interval = f"{_signed(score.low)} to {_signed(score.high)}"
        numbers = f"{score.first:8.1f}{score.second:8.1f}{_signed(score.difference):>8}"
        print(f"{name:17}{numbers}   {interval:<16}{score.p:7.3f}")
    print("p: the chance of a difference this far from 0, either way, between equally good translations\n")


def _print_counts(comparison: "Comparison", first: "Translated") -> None:
    differences = [change.difference for change in comparison.changes]
    better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    print(
        f"{len(differences):,} of {len(first.sources):,} translations differ; by their chrF, B's is better in "
        f"{better:,}, worse in {worse:,}, as good in {len(differences) - better - worse:,}"
    )


def _print_change(change: "Change", first: "Translated") -> None:
    scores = f"chrF {change.first_chrf:.1f} to {change.second_chrf:.1f}"
    print(f"\n{_signed(change.difference)}  sentence {change.index}, {scores}")
    print(printable(f"  source     {first.sources[change.index]}"))
    for text in first.references[change.index]:
        print(printable(f"  reference  {text}"))
    print(printable(f"  A          {change.first}\n  B          {change.second}"))


def _signed(number: float) -> str:
    return f"{round(number, 1) + 0.0:+.1f}"  # never -0.0
