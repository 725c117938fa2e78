"""The command `passerelle`: translate lines, look at the attention behind a translation."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from passerelle.config import DecodingConfig, EvaluateParams, load_params

if TYPE_CHECKING:
    from passerelle.decoding.translate import Translation
    from passerelle.model_folder import LoadedModel

LINES_AT_ONCE = 5000
"""Read, translated and written together; a terminal is answered line by line."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; faults of the user's input are one line on stderr and exit status 1."""
    parsed = _parser().parse_args(arguments)
    try:
        parsed.run(parsed)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except ValueError as error:
        sys.exit(f"error: {error}")
    except OSError as error:
        sys.exit(f"error: {error.filename}: {error.strerror}" if error.filename else f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="passerelle", description="Translate with a trained model.")
    commands = parser.add_subparsers(required=True, metavar="command")
    translate = commands.add_parser(
        "translate",
        help="translate a file or standard input, line by line",
        description="Write one translation for each line, in order; an empty line stays empty.",
    )
    translate.add_argument("file", nargs="?", type=Path, help="UTF-8 text; without it, standard input")
    translate.set_defaults(run=_translate)
    attention = commands.add_parser(
        "attention",
        help="translate a sentence and show what the model attended to",
        description="Print the translation with the source word behind each of its tokens; write pictures of "
        "every layer and head, and the tensors.",
    )
    attention.add_argument("sentence")
    attention.add_argument(
        "--out", type=Path, default=Path("attention"), help="folder for the files (attention)"
    )
    attention.set_defaults(run=_attention)
    for command in (translate, attention):
        command.add_argument("--model", type=Path, default=Path("model"), help="folder of the model (model)")
        command.epilog = (
            "The section decoding of params.yaml beside the model's folder says how translations are searched "
            "for; without that file, the defaults do."
        )
    return parser


def _translate(arguments: argparse.Namespace) -> None:
    from passerelle.decoding.translate import translate

    loaded, decoding = _load(arguments.model)
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
                    _warn_cut(f"line {num_lines}", translation)
            sys.stdout.flush()


def _attention(arguments: argparse.Namespace) -> None:
    from passerelle.decoding.translate import translate
    from passerelle.evaluation.attention_maps import alignment, attention_map, file_name, write_attention_map
    from passerelle.evaluation.plots import readable, write_pictures

    loaded, decoding = _load(arguments.model)
    [translation] = translate(loaded, [arguments.sentence], decoding)
    attention = attention_map(loaded, translation)
    print(translation.text)
    if not translation.is_finished:
        _warn_cut("the sentence", translation)
    rows = alignment(attention)
    targets, sources = readable([row[0] for row in rows]), readable([row[1] for row in rows])
    width = max(map(len, targets))
    print("\nattends most to (mean of all layers and heads; the pictures show each)")
    for target, source, (_, _, weight) in zip(targets, sources, rows, strict=True):
        print(f"  {target:{width}}  {weight:4.0%}  {source}")
    name = file_name(1, translation.source)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_attention_map(attention, arguments.out, name)
    print()
    for path in write_pictures(attention, arguments.out, name):
        print(path)


def _load(folder: Path) -> tuple["LoadedModel", DecodingConfig]:
    """The model, and the settings of the pipeline that made it."""
    params = folder.resolve().parent / "params.yaml"
    decoding = load_params(EvaluateParams, params).decoding if params.is_file() else DecodingConfig()
    import torch

    from passerelle.model_folder import load_model

    return load_model(folder, torch.device("cuda" if torch.cuda.is_available() else "cpu")), decoding


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


def _warn_cut(name: str, translation: "Translation") -> None:
    print(f"warning: {name}: the translation was cut at {len(translation.ids)} tokens", file=sys.stderr)
