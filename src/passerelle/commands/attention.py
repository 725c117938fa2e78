"""`passerelle attention`: what a model attended to while it translated a sentence."""

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from passerelle.commands.loading import add_model, load
from passerelle.stages import printable


def add(commands: Any) -> None:
    """The command's arguments."""
    attention = commands.add_parser(
        "attention",
        help="translate a sentence and show what the model attended to",
        description="Print the translation, and a grid of its words and those of the source: the darker a block, "
        "the more a word looked there. Write pictures of every layer and head, and the tensors.",
    )
    attention.add_argument("sentence")
    attention.add_argument(
        "--out", type=Path, default=Path("attention"), help="folder for the files (attention)"
    )
    add_model(attention)
    attention.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    from passerelle.decoding.translate import translate
    from passerelle.evaluation.alignment_grid import alignment_grid
    from passerelle.evaluation.attention_maps import attention_map, file_name, write_attention_map
    from passerelle.evaluation.plots import write_pictures

    loaded, decoding = load(arguments.model)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    [translation] = translate(loaded, [arguments.sentence], decoding)
    attention = attention_map(loaded, translation)
    print(printable(translation.text))
    if not translation.is_finished:
        print(f"warning: the translation was cut at {len(translation.ids)} tokens", file=sys.stderr)
    print("\nmean of all layers and heads; the pictures show each")
    print(printable(alignment_grid(attention, shutil.get_terminal_size().columns)))
    name = file_name(1, translation.source)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_attention_map(attention, arguments.out, name)
    print()
    for path in write_pictures(attention, arguments.out, name):
        print(path)
