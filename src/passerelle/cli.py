"""The command `passerelle`; each of its commands is a file in `commands`."""

import argparse
import os
import sys
from collections.abc import Sequence

from passerelle.commands import attention, compare, leak, reproduce, score, sync, translate
from passerelle.stages import end_quickly, fault_line

COMMANDS = (translate, score, attention, compare, leak, reproduce, sync)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; faults of the user's input are one line on stderr and exit status 1."""
    parsed = _parser().parse_args(arguments)
    end_quickly()
    try:
        parsed.run(parsed)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {fault_line(error)}")
    except KeyboardInterrupt:
        sys.exit(130)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="passerelle", description="Translate with trained models, and judge them."
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in COMMANDS:
        command.add(commands)
    return parser
