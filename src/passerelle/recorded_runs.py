"""Reading what MLflow holds of runs: parameters, tags, scores, and files of theirs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passerelle.mlflow_run import TAG
from passerelle.tracking_address import SQLITE, address_of, check_answers, client_of, without_password

NUM_SHOWN = 5


@dataclass(frozen=True)
class RecordedRun:
    """One run."""

    run_id: str
    experiment: str
    params: dict[str, str]
    """`section.key` -> value, as text."""
    tags: dict[str, str]
    metrics: dict[str, float]
    """The last value of each."""


def read_run(name: str) -> RecordedRun:
    """The run with this MLflow id or fingerprint; of several with one fingerprint the newest.

    Looked for where runs are recorded from here (`$MLFLOW_TRACKING_URI`, else mlflow.db in the root). Raises
    ValueError where there is none, or the server does not answer.
    """
    client, uri = _client()
    experiments = {experiment.experiment_id: experiment.name for experiment in client.search_experiments()}
    text = name.replace("'", "")
    for condition in (f"attributes.run_id = '{text}'", f"tags.`{TAG}` = '{text}'"):
        found = client.search_runs(
            list(experiments), condition, max_results=1, order_by=["attributes.start_time DESC"]
        )
        if found:
            data, info = found[0].data, found[0].info
            return RecordedRun(
                info.run_id, experiments[info.experiment_id], data.params, data.tags, data.metrics
            )
    newest = client.search_runs(
        list(experiments), max_results=NUM_SHOWN, order_by=["attributes.start_time DESC"]
    )
    known = ", ".join(run.info.run_id for run in newest) or "no run at all"
    raise ValueError(f"{name}: no run with this id or fingerprint in {uri}; it holds {known}")


def artifact_file(run_id: str, path: str, folder: Path) -> Path:
    """A copy, below folder, of the run's file, as `evaluation/translations.jsonl`.

    Raises ValueError where the run has no such file.
    """
    client, uri = _client()
    try:
        return Path(client.download_artifacts(run_id, path, str(folder)))
    except Exception as error:  # each kind of store has errors of its own
        raise ValueError(
            f"run {run_id} in {uri}: no artifact {path} ({' '.join(str(error).split())[:200]})"
        ) from None


def _client() -> tuple[Any, str]:
    """MLflow's client, and its address without a password."""
    address = address_of("", Path())
    uri = without_password(address.uri)
    if address.uri.startswith(SQLITE) and not Path(address.uri.removeprefix(SQLITE)).is_file():
        raise ValueError(f"{uri}: no such database, so nothing is recorded here; set MLFLOW_TRACKING_URI")
    try:
        check_answers(address.uri)
    except ConnectionError as error:
        raise ValueError(f"MLflow at {uri} {error}; set MLFLOW_TRACKING_URI, or start the server") from None
    return client_of(address), uri
