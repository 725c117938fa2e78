"""`passerelle translate`: one translation for each line."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from passerelle.commands.loading import add_model, load

LINES_AT_ONCE = 5000
"""Read, translated and written together; a terminal is answered line by line."""


def add(commands: Any) -> None:
    """The command's arguments."""
    translate = commands.add_parser(
        "translate",
        help="translate a file or standard input, line by line",
        description="Write one translation for each line, in order; an empty line stays empty.",
    )
    translate.add_argument("file", nargs="?", type=Path, help="UTF-8 text; without it, standard input")
    add_model(translate)
    translate.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    from passerelle.decoding.translate import translate

    loaded, decoding = load(arguments.model)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    num_lines = 0
    with nullcontext(sys.stdin.buffer) if arguments.file is None else arguments.file.open("rb") as file:
        for lines in _parts(
            _lines(file, arguments.file or "standard input"), 1 if file.isatty() else LINES_AT_ONCE
        ):
            for translation in translate(loaded, lines, decoding):
                num_lines += 1
                print(translation.text)
                if not translation.is_finished:
                    print(
                        f"warning: line {num_lines}: the translation was cut at {len(translation.ids)} tokens",
                        file=sys.stderr,
                    )
            sys.stdout.flush()


def _lines(file: BinaryIO, name: object) -> Iterator[str]:
    """Lines end with LF alone; other separators are spaces, of which cleaning leaves none at the ends."""
    for number, line in enumerate(file, start=1):
        try:
            yield line.decode().rstrip("\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: not UTF-8 at byte {error.start + 1}; save it as UTF-8"
            ) from None


def _parts(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(lines)
    while part := list(islice(rest, size)):
        yield part
