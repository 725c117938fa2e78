"""`passerelle attention`: what a model attended to while it translated a sentence."""

import argparse
import sys
from pathlib import Path
from typing import Any

from passerelle.commands.loading import add_model, load


def add(commands: Any) -> None:
    """The command's arguments."""
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
    add_model(attention)
    attention.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    from passerelle.decoding.translate import translate
    from passerelle.evaluation.attention_maps import alignment, attention_map, file_name, write_attention_map
    from passerelle.evaluation.plots import readable, write_pictures

    loaded, decoding = load(arguments.model)
    [translation] = translate(loaded, [arguments.sentence], decoding)
    attention = attention_map(loaded, translation)
    print(translation.text)
    if not translation.is_finished:
        print(f"warning: the translation was cut at {len(translation.ids)} tokens", file=sys.stderr)
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
