"""How a pipeline script meets its user: help, logging, an orderly end, and faults as one readable message."""

import atexit
import errno
import gc
import logging
import os
import re
import select
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

ADVICE = {
    errno.EACCES: "make it readable and writable for you, or work in a copy of this folder",
    errno.EPERM: "make it readable and writable for you, or work in a copy of this folder",
    errno.EROFS: "work in a copy of this folder that can be written",
    errno.ENOSPC: "make room on that disk, then run the same command again",
    errno.EDQUOT: "make room within your quota, then run the same command again",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f), then run the same command again",
}
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""But not the tab and the end of a line; with those that turn the direction of what is read."""


def run_stage(main: Callable[[], None]) -> None:
    """Run a stage's `main`; print faults of the user's input as `error: ...` and exit with status 1.

    Ctrl-C, SIGTERM, a closed terminal and the death of the DVC that runs the stage end it in order: what it has half
    written is removed, and one line says how to go on. The status is 128 + the signal's number, as a shell has it.
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
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO if arguments else logging.WARNING, handlers=[handler])
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup has a closed terminal ignored
            signal.signal(number, _stop)
    end_quickly()
    try:
        _end_with_dvc()
        main()
    except KeyboardInterrupt as interruption:
        print("stopped; run `dvc repro` again to do this stage anew", file=sys.stderr)
        _end_at_once(128 + (interruption.number if isinstance(interruption, _Stopped) else signal.SIGINT))
    except (ValueError, OSError) as error:
        if arguments:
            raise
        print(f"error: {fault_line(error)}", file=sys.stderr)
        sys.exit(1)


def end_quickly() -> None:
    """Have Python's end not look for garbage among the objects of torch and MLflow: took 2 s of stage `train`."""
    atexit.register(gc.freeze)


def fault_line(error: ValueError | OSError) -> str:
    """What is said of a fault of the user's input: `path: words; what to do`."""
    if not isinstance(error, OSError) or error.errno is None:
        return printable(str(error))
    name = error.filename2 or error.filename
    words = f"{name}: {error.strerror}" if name else str(error.strerror)
    return printable(f"{words}; {ADVICE[error.errno]}" if error.errno in ADVICE else words)


def printable(text: str) -> str:
    """The text with control characters as `\\x1b`: a terminal shows them, where it would obey them as they are."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


class _Formatter(logging.Formatter):
    """For messages, which quote files and servers."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class _Stopped(KeyboardInterrupt):
    """A signal that ends the stage just as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        self.number = number


def _stop(number: int, frame: FrameType | None = None) -> NoReturn:
    raise _Stopped(number)


def _end_at_once(status: int) -> NoReturn:
    """Without Python's own end, which waits for threads, and during which one at work within a library may crash."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _end_with_dvc() -> None:
    """Where DVC runs this stage, end it as SIGTERM does once that DVC is dead, by SIGKILL say.

    Else it would work on beside the one that the next `dvc repro` starts. On Linux; elsewhere nothing is done. (The
    kernel's PR_SET_PDEATHSIG would not do: it tells of the parent alone, and that may be a shell between them.)
    """
    if "DVC_STAGE" not in os.environ or not hasattr(os, "pidfd_open"):
        return
    try:
        descriptor = os.pidfd_open(_process_of_dvc(os.environ["DVC_STAGE"]))
    except ProcessLookupError:
        _stop(signal.SIGTERM)
    except OSError:  # another user's DVC, or a container that forbids to look
        return

    def watch() -> None:
        select.select([descriptor], [], [])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="end with DVC", daemon=True).start()


def _process_of_dvc(stage: str) -> int:
    """The nearest process above that has another $DVC_STAGE: the one that has set ours.

    Raises ProcessLookupError where it is dead. Then the first one of another session has taken its place.
    """
    process = os.getppid()
    while os.getsid(process) == os.getsid(0):
        if f"DVC_STAGE={stage}".encode() not in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
            return process
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    raise ProcessLookupError
