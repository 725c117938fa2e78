"""`passerelle reproduce`: make a recorded run again from its commit, data and parameters, and compare the scores."""

import argparse
import tempfile
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """The command's arguments."""
    reproduce = commands.add_parser(
        "reproduce",
        help="make a recorded run again and compare its scores",
        description="Say which links of the run's chain are found, differ or are missing; then clone the project "
        "at its commit, with its uncommitted changes and parameters, run the pipeline there, and compare.",
        epilog="The recorded changes are code, and are run: do this with runs of an MLflow server that you trust.",
    )
    reproduce.add_argument(
        "recorded", metavar="run", help="id of the MLflow run, or the fingerprint of the model"
    )
    reproduce.add_argument("--check", action="store_true", help="look for the links alone, run nothing")
    reproduce.add_argument("--into", type=Path, help="folder for the clone (.runs/reproduced/<run id>)")
    reproduce.add_argument(
        "--tolerance",
        type=float,
        metavar="POINTS",
        help="largest difference of a score that counts as none (1.0)",
    )
    reproduce.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    from passerelle.recorded_runs import artifact_file, read_run
    from passerelle.replay import TOLERANCE, compare, make_clone, run_pipeline
    from passerelle.reproduce import links, record_of
    from passerelle.run_folder import repository_root, runs_folder

    root = repository_root()
    recorded = read_run(arguments.recorded)
    with tempfile.TemporaryDirectory() as files:
        record = record_of(
            recorded.run_id, recorded.tags, lambda name: artifact_file(recorded.run_id, name, Path(files))
        )
    print(f"run {record.run_id} of {recorded.experiment}")
    chain = links(record, root)
    for link in chain:
        print(f"  {link.state:8} {link.name:11} {link.text}")
    if missing := [link.name for link in chain if link.state == "missing"]:
        raise ValueError(f"run {record.run_id} cannot be made again: {', '.join(missing)} missing, see above")
    if arguments.check:
        return
    folder = (arguments.into or runs_folder() / "reproduced" / record.run_id).resolve()
    make_clone(record, root, folder)
    print(f"made again in {folder}", flush=True)
    run_pipeline(record, root, folder)
    tolerance = TOLERANCE if arguments.tolerance is None else arguments.tolerance
    outcome = compare(record, folder, tolerance)
    print("\n".join(outcome.lines))
    if outcome.faults:
        raise ValueError(f"not the same within {tolerance} points: {'; '.join(outcome.faults)}")
    print(f"reproduced: every score within {tolerance} points")
