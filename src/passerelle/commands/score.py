"""`passerelle score`: how probable a model finds given translations."""

import argparse
from pathlib import Path
from typing import Any

from passerelle.commands.lines import read_lines
from passerelle.commands.loading import add_model, load

LINES_AT_ONCE = 5000


def add(commands: Any) -> None:
    """The command's arguments."""
    score = commands.add_parser(
        "score",
        help="say how probable the model finds given translations",
        description="For each line of SOURCE and the same line of TARGET, its translation, write the natural "
        "log-probability, its mean over the tokens, and their number (the end of the sentence is one).",
    )
    score.add_argument("source", type=Path, help="UTF-8 text, one sentence a line")
    score.add_argument("target", type=Path, help="UTF-8 text, the translation of each of these lines")
    add_model(score)
    score.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    from passerelle.decoding.forced import score

    sources, targets = _lines(arguments.source), _lines(arguments.target)
    if len(sources) != len(targets):
        raise ValueError(
            f"{arguments.source} has {len(sources)} lines, but {arguments.target} {len(targets)}; "
            "each line needs its translation"
        )
    loaded, _ = load(arguments.model)
    print("log_prob", "mean", "tokens", sep="\t")
    for start in range(0, len(sources), LINES_AT_ONCE):
        part = slice(start, start + LINES_AT_ONCE)
        for log_probs in score(loaded, sources[part], targets[part]):
            total = sum(log_probs)
            mean = total / len(log_probs) if log_probs else 0.0
            print(f"{total:.4f}", f"{mean:.4f}", len(log_probs), sep="\t")


def _lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        return list(read_lines(file, path))
