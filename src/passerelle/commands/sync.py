"""`passerelle sync`: send to MLflow what it missed while its server was away."""

import argparse
import sys
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """The command's arguments."""
    sync = commands.add_parser(
        "sync",
        help="send to MLflow what it missed while its server was away",
        description="Go through the runs in $PASSERELLE_RUNS (.runs) and send what could not be sent to the server "
        "of $MLFLOW_TRACKING_URI (mlflow.db). One line for each run; status 1 where something remains.",
    )
    sync.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    from passerelle.run_folder import runs_folder
    from passerelle.tracking import num_unsent

    runs = runs_folder()
    waiting = [folder for folder in sorted(runs.glob("*")) if num_unsent(folder)]
    if not waiting:
        print(f"nothing to send: MLflow has all records of the runs in {runs}")
    for folder in waiting:
        print(f"{folder.name}: {_send(folder)}", flush=True)
    if any(num_unsent(folder) for folder in waiting):
        sys.exit(1)


def _send(folder: Path) -> str:
    """What became of the run's records."""
    from passerelle.run_folder import lock_run
    from passerelle.tracking import num_unsent, send_unsent

    faults: list[str] = []
    try:
        with lock_run(folder):
            num_sent, num_left_out = send_unsent(folder, faults.append)
    except ValueError as error:  # its own process sends them
        return f"{num_unsent(folder)} remain: {error}"
    counts = [f"{num_sent} {'record' if num_sent == 1 else 'records'} sent"]
    counts += [f"{num_left_out} left out"] if num_left_out else []
    counts += [f"{remaining} remain"] if (remaining := num_unsent(folder)) else []
    return ": ".join([", ".join(counts), *(["; ".join(faults)] if faults else [])])
