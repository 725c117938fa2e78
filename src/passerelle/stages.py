"""How a pipeline script meets its user: help, logging, and faults as one readable message."""

import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path


def run_stage(main: Callable[[], None]) -> None:
    """Run a stage's `main`; print faults of the user's input as `error: ...` and exit with status 1.

    `-h` prints the docstring of the script. `-v` shows what the libraries below log, and tracebacks.
    """
    _run(main, sys.argv[1:])


def run_variant_stage(main: Callable[[Path], None]) -> None:
    """As `run_stage`, for a stage that can run for a variant of its parameters.

    `main` receives the folder that holds the stage's params.yaml and what it writes: with `--variant NAME` the
    folder NAME, else `.`, the one that the stage is run in.
    """
    arguments = sys.argv[1:]
    folder = Path()
    if "--variant" in arguments:
        position = arguments.index("--variant")
        folder = _variant(arguments[position + 1 : position + 2])
        del arguments[position : position + 2]
    _run(lambda: main(folder), arguments)


def _variant(names: list[str]) -> Path:
    """The folder of the one name, which must hold a params.yaml."""
    if not names or not re.fullmatch(r"\w[\w.-]*", names[0]):
        sys.exit("error: --variant needs the name of a folder that is beside params.yaml")
    path = Path(names[0], "params.yaml")
    if not path.is_file():
        sys.exit(f"error: {path}: no such file; a variant is a folder with a params.yaml of its own")
    return path.parent


def _run(main: Callable[[], None], arguments: list[str]) -> None:
    if {"-h", "--help"} & set(arguments):
        print(sys.modules["__main__"].__doc__)
        return
    unknown = [argument for argument in arguments if argument not in ("-v", "--verbose")]
    if unknown:
        sys.exit(
            f"error: unknown argument {unknown[0]}; settings are in params.yaml, -h prints help, -v says more"
        )
    logging.basicConfig(
        level=logging.INFO if arguments else logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    try:
        main()
    except KeyboardInterrupt:
        print("stopped; run `dvc repro` again to do this stage anew", file=sys.stderr)
        sys.exit(130)
    except (ValueError, OSError) as error:
        if arguments:
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
