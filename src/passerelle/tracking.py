"""Recording in MLflow: one run for each trained model, shared by the stages.

MLflow never delays or stops the work: see `sending`. What an unreachable server misses is kept in
`<run folder>/mlflow-unsent/`, and sent by the next stage of the run or `passerelle sync`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from passerelle.mlflow_run import MlflowRun
from passerelle.run_log import RunLog
from passerelle.sending import Sender
from passerelle.tracking_address import address_of, begin_facts
from passerelle.unsent import kept_files, unsent_folder

CURVES_SECONDS = 10.0
"""That the last rows of curves are waited for, at most."""


def open_run(fingerprint: str, run_folder: Path) -> RunLog:
    """The run of this fingerprint, made where there is none; what could not be sent before goes first."""
    run_folder.mkdir(parents=True, exist_ok=True)
    address = address_of(fingerprint, run_folder)
    begin_facts(address)
    run = MlflowRun(address)
    return RunLog(Sender(run.perform, unsent_folder(run_folder), run.describe))


class Curves:
    """Sends curves to a run that another process has open: travels to Ray's controller, which calls it."""

    def __init__(self, fingerprint: str, run_folder: Path) -> None:
        self._address = address_of(fingerprint, run_folder)
        self._log: RunLog | None = None

    def __call__(self, rows: Sequence[Mapping[str, float]], is_last: bool) -> None:
        """Take the rows over; only after the last ones, wait a little for all to be sent."""
        if self._log is None:
            run = MlflowRun(self._address, remembers_steps=True)
            unsent = unsent_folder(self._address.run_folder)
            self._log = RunLog(Sender(run.perform, unsent, run.describe))
        self._log.log_rows(rows)
        if is_last:
            self._log.drain(CURVES_SECONDS)

    def __getstate__(self) -> dict[str, object]:
        """As new: Ray sends it to workers that are started again too, and a thread cannot travel."""
        return vars(self) | {"_log": None}


def num_unsent(run_folder: Path) -> int:
    """How many records of the run wait to be sent."""
    return len(kept_files(unsent_folder(run_folder)))


def send_unsent(run_folder: Path, say: Callable[[str], None]) -> tuple[int, int]:
    """Send what waits; says what goes wrong. Returns how many records were sent, and how many left out.

    The run is found, or made, where its stages record from: what `mlflow.json` says of it goes before the
    environment.
    """
    run = MlflowRun(address_of(run_folder.name, run_folder))
    sender = Sender(run.perform, unsent_folder(run_folder), run.describe, say)
    sender.close()
    return sender.num_sent, sender.num_left_out
