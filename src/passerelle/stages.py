"""How a pipeline script meets its user: help, logging, and faults as one readable message."""

import logging
import sys
from collections.abc import Callable


def run_stage(main: Callable[[], None]) -> None:
    """Run a stage's `main`; print faults of the user's input as `error: ...` and exit with status 1.

    `-h` prints the docstring of the script. `-v` shows what the libraries below log, and tracebacks.
    """
    arguments = sys.argv[1:]
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
