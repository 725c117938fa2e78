"""One MLflow run for each trained model, shared by the stages; the only file that talks to MLflow.

A run is found by its fingerprint: by the id kept in `<run folder>/mlflow.json`, else by its tag. MLflow never
delays or stops the work: see `sending`. What an unreachable server misses is kept in
`<run folder>/mlflow-unsent.jsonl`.
"""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from passerelle.run_log import RunLog
from passerelle.sending import Operation, RefusedError, Sender
from passerelle.tracking_address import (
    Address,
    address_of,
    awaited_id,
    check_answers,
    client_of,
    keep_id,
    kept_id,
    without_password,
)

TAG = "passerelle.fingerprint"
MOST_METRICS, MOST_PARAMS, MOST_TAGS = 1000, 100, 100
"""Of one request."""
REFUSALS = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_ALREADY_EXISTS")
"""MLflow's words for what it will never do."""
MODEL_LIBRARIES = (
    "mlflow",
    "torch",
    "numpy",
    "pyarrow",
    "pydantic",
    "ruamel.yaml",
    "safetensors",
    "sentencepiece",
)
"""What the model needs where it is served."""

Item = TypeVar("Item")


def open_run(fingerprint: str, run_folder: Path) -> RunLog:
    """The run of this fingerprint, made where there is none; what could not be sent before goes first."""
    run_folder.mkdir(parents=True, exist_ok=True)
    address = address_of(fingerprint, run_folder)
    performer = _Mlflow(address, is_owner=True)
    return RunLog(Sender(performer.perform, run_folder / "mlflow-unsent.jsonl", performer.describe))


class Curves:
    """Sends curves to a run that another process has open: travels to Ray's controller, which calls it."""

    def __init__(self, fingerprint: str, run_folder: Path) -> None:
        self._address = address_of(fingerprint, run_folder)
        self._log: RunLog | None = None

    def __call__(self, rows: Sequence[Mapping[str, float]], is_last: bool) -> None:
        """Take the rows over; only after the last ones, wait a little for all to be sent.

        Rows that cannot be sent are dropped: the stage sends what the run lacks from the last checkpoint.
        """
        if self._log is None:
            performer = _Mlflow(self._address, is_owner=False)
            self._log = RunLog(Sender(performer.perform, None, performer.describe))
        self._log.log_rows(rows)
        if is_last:
            self._log.drain(10.0)


class _Mlflow:
    """Carries out the operations of `RunLog` for one run, in the sender's thread."""

    def __init__(self, address: Address, *, is_owner: bool) -> None:
        self._address = address
        self._is_owner = is_owner
        self._client: Any = None
        self._run_id = ""
        self._steps: set[int] = set()
        self._monitor: Any = None

    def describe(self, error: Exception) -> str:
        """One line that names the server, without its password."""
        return without_password(f"MLflow at {self._address.uri}: {' '.join(str(error).split())[:300]}")

    def perform(self, operation: Operation) -> None:
        """Raises where MLflow does not answer, and RefusedError where it refuses."""
        check_answers(self._address.uri)
        if self._client is None:
            self._connect()
        arguments = {name: value for name, value in operation.items() if name != "what"}
        try:
            getattr(self, f"_{operation['what']}")(**arguments)
        except Exception as error:
            if getattr(error, "error_code", "") in REFUSALS or isinstance(error, FileNotFoundError):
                raise RefusedError(str(error)) from error
            raise

    def _connect(self) -> None:
        client = client_of(self._address)
        if self._is_owner:
            self._run_id = _kept_id(client, self._address) or _tagged_id(client, self._address)
            self._run_id = self._run_id or _new_id(client, self._address)
            keep_id(self._address, self._run_id)
        else:
            self._run_id = awaited_id(self._address)
        self._client = client

    def _status(self, status: str) -> None:
        if status == "RUNNING":
            self._client.update_run(self._run_id, status)
            return
        if self._monitor is not None:
            self._monitor.finish()
        self._client.set_terminated(self._run_id, status)

    def _params(self, values: Mapping[str, str]) -> None:
        from mlflow.entities import Param

        known = self._client.get_run(self._run_id).data.params
        new = [Param(key, value) for key, value in values.items() if key not in known]
        for part in _parts(new, MOST_PARAMS):
            self._client.log_batch(self._run_id, params=part)
        self._tags({key: value for key, value in values.items() if known.get(key, value) != value})

    def _tags(self, values: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        for part in _parts([RunTag(key, value) for key, value in values.items()], MOST_TAGS):
            self._client.log_batch(self._run_id, tags=part)

    def _rows(self, rows: Sequence[Mapping[str, float]], milliseconds: int) -> None:
        if self._is_owner or not self._steps:  # others add rows too
            self._steps = {point.step for point in self._client.get_metric_history(self._run_id, "loss")}
        new = [row for row in rows if int(row["step"]) not in self._steps]
        for part in _parts(new, MOST_METRICS // max((len(row) for row in new), default=1)):
            points = [(key, row[key], int(row["step"])) for row in part for key in row if key != "step"]
            self._points(points, milliseconds)
            self._steps.update(int(row["step"]) for row in part)

    def _metrics(self, values: Mapping[str, float], milliseconds: int) -> None:
        self._points([(key, value, 0) for key, value in values.items()], milliseconds)

    def _points(self, points: Iterable[tuple[str, float, int]], milliseconds: int) -> None:
        from mlflow.entities import Metric

        finite = [
            Metric(key, value, milliseconds, step) for key, value, step in points if math.isfinite(value)
        ]
        self._client.log_batch(self._run_id, metrics=finite)

    def _dataset(self, context: str, path: str, digest: str, counts: Mapping[str, float]) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        name = f"{self._address.experiment}/{Path(path).name}"
        source, profile = json.dumps({"uri": path}), json.dumps(counts)
        dataset = Dataset(name=name, digest=digest[:16], source_type="local", source=source, profile=profile)
        inputs = [DatasetInput(dataset, [InputTag("mlflow.data.context", context)])]
        self._client.log_inputs(self._run_id, datasets=inputs)

    def _files(self, path: str, folder: str) -> None:
        log = self._client.log_artifacts if Path(path).is_dir() else self._client.log_artifact
        log(self._run_id, path, folder)

    def _text(self, text: str, name: str) -> None:
        self._client.log_text(self._run_id, text, name)

    def _model(self, path: str, sentences: list[str]) -> None:
        import mlflow

        if self._has_model():
            return
        mlflow.set_tracking_uri(self._address.uri)
        package = Path(__file__).parent
        with mlflow.start_run(run_id=self._run_id):
            mlflow.pyfunc.log_model(
                name="model",
                python_model=str(package / "pyfunc_model.py"),
                artifacts={"model": path},
                code_paths=[str(package)],
                input_example=sentences,
                pip_requirements=[f"{name}=={version(name).partition('+')[0]}" for name in MODEL_LIBRARIES],
            )
        self._status("RUNNING")  # leaving the context has ended the run

    def _has_model(self) -> bool:
        outputs = self._client.get_run(self._run_id).outputs.model_outputs
        models = [self._client.get_logged_model(output.model_id) for output in outputs]
        return any(model.status == "READY" for model in models)

    def _watch(self) -> None:
        from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

        self._monitor = SystemMetricsMonitor(
            self._run_id, resume_logging=True, tracking_uri=self._address.uri
        )
        self._monitor.start()


def _kept_id(client: Any, address: Address) -> str:
    """The id that an earlier stage or start wrote down, where the server knows it."""
    from mlflow.exceptions import MlflowException

    run_id = kept_id(address)
    if not run_id:
        return ""
    try:
        run = client.get_run(run_id)
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return ""
        raise
    return run_id if run.info.lifecycle_stage == "active" else ""


def _tagged_id(client: Any, address: Address) -> str:
    """The id of the newest active run with this fingerprint in the experiment."""
    experiment = client.get_experiment_by_name(address.experiment)
    if experiment is None:
        return ""
    query = f"tags.`{TAG}` = '{address.fingerprint}'"
    runs = client.search_runs([experiment.experiment_id], query, order_by=["start_time DESC"], max_results=1)
    return str(runs[0].info.run_id) if runs else ""


def _new_id(client: Any, address: Address) -> str:
    """The id of a new run, in the experiment of that name or a new one."""
    experiment = client.get_experiment_by_name(address.experiment)
    experiment_id = experiment.experiment_id if experiment else client.create_experiment(address.experiment)
    name = os.environ.get("DVC_EXP_NAME") or address.fingerprint
    tags = {TAG: address.fingerprint, "mlflow.source.name": "passerelle", "mlflow.source.type": "LOCAL"}
    return str(client.create_run(experiment_id, run_name=name, tags=tags).info.run_id)


def _parts(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
