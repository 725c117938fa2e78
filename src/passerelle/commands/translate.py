"""`passerelle translate`: one translation for each line, or the best ones."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passerelle.commands.lines import read_lines
from passerelle.commands.loading import EPILOG, load
from passerelle.stages import printable

if TYPE_CHECKING:
    from passerelle.config import DecodingConfig
    from passerelle.decoding.translate import Translation

LINES_AT_ONCE = 10_000
"""Read, translated and written together; a terminal is answered line by line."""


def add(commands: Any) -> None:
    """The command's arguments."""
    translate = commands.add_parser(
        "translate",
        help="translate a file or standard input, line by line",
        description="Write one translation for each line, in order; an empty line stays empty.",
        epilog=EPILOG,
    )
    translate.add_argument("file", nargs="?", type=Path, help="UTF-8 text; without it, standard input")
    translate.add_argument(
        "--model",
        type=Path,
        action="append",
        help="folder of the model (model); several translate together, by the mean of their probabilities",
    )
    translate.add_argument(
        "--n-best",
        type=_count,
        metavar="N",
        help="write the N best translations of each line, as line number, rank, score and text between tabs",
    )
    translate.set_defaults(run=_run)


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a number from 1 on, but is {text!r}")
    return int(text)


def _run(arguments: argparse.Namespace) -> None:
    from passerelle.decoding.processes import num_processes, translation_processes

    folders = arguments.model or [Path("model")]
    loaded, config = load(*folders)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    with nullcontext(sys.stdin.buffer) if arguments.file is None else arguments.file.open("rb") as file:
        lines = read_lines(file, arguments.file or "standard input")
        parts = _parts(lines, 1 if file.isatty() else LINES_AT_ONCE)
        first = next(parts, [])
        with translation_processes(folders, num_processes(len(first), config), loaded) as translate:
            number = 0
            for part in chain([first], parts):
                for translations in translate(part, config, arguments.n_best or 1):
                    number += 1
                    _write(number, translations, has_ranks=arguments.n_best is not None)
                    _warn(number, translations[0], config)
                sys.stdout.flush()


def _write(number: int, translations: "list[Translation]", has_ranks: bool) -> None:
    """Files and other programs get every character as it is; a terminal shows control characters as escapes."""
    shown = printable if sys.stdout.isatty() else str
    if not has_ranks:
        print(shown(translations[0].text))
        return
    for rank, translation in enumerate(translations, start=1):
        print(f"{number}\t{rank}\t{translation.score:.4f}\t{shown(translation.text)}")


def _warn(number: int, translation: "Translation", config: "DecodingConfig") -> None:
    """Say on stderr where a line was not translated whole, or its translation has no end."""
    if translation.is_cut:
        print(
            f"warning: line {number}: only its first {config.max_source_tokens} tokens were translated "
            "(decoding.long_lines is cut)",
            file=sys.stderr,
        )
    if not translation.is_finished:
        where = f"at {len(translation.ids)} tokens" if translation.num_parts == 1 else "in one of its parts"
        print(f"warning: line {number}: the translation was cut {where}", file=sys.stderr)


def _parts(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(lines)
    while part := list(islice(rest, size)):
        yield part
