"""Where runs keep their state: outside the outputs of DVC, which are deleted before a stage begins."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def repository_root() -> Path:
    """The folder that holds this project: its source tree, else the nearest one above that DVC or git keeps.

    A stage of `examples/` works in its own folder, and a queued DVC experiment in a copy; the runs and the
    tracking database of both belong to the one root.
    """
    source_tree = Path(__file__).resolve().parents[2]
    if (source_tree / "pyproject.toml").is_file():
        return source_tree
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if (folder / ".dvc").is_dir() or (folder / ".git").exists():
            return folder
    return here


def runs_folder() -> Path:
    """`$PASSERELLE_RUNS`, else `.runs` in the root; absolute. A cluster needs one that all machines share."""
    value = os.environ.get("PASSERELLE_RUNS", "")
    if "://" in value:
        raise ValueError(f"PASSERELLE_RUNS={value}: must be a folder; mount the storage and give its path")
    return Path(value).expanduser().resolve() if value else repository_root() / ".runs"


@contextmanager
def lock_run(run_folder: Path) -> Iterator[None]:
    """Hold the run for this process; raises ValueError where another one holds it, naming it. Makes the folder.

    The kernel frees it with the process, however that ends; what stands in the file is for people.
    """
    run_folder.mkdir(parents=True, exist_ok=True)
    with (run_folder / "lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise ValueError(f"{run_folder}: {holder} is training this run; wait for it or stop it") from None
        file.truncate(0)
        print(f"process {os.getpid()} on {socket.gethostname()}", file=file, flush=True)
        yield
