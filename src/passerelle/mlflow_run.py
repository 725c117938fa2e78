"""One MLflow run, carried out: what each operation of `run_log` asks of MLflow's client.

A run is found by its fingerprint: by the id kept in `<run folder>/mlflow.json`, else by its tag, else it is made.
Every operation may be repeated: a crash in the middle of one makes neither a gap nor a double.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from passerelle.files import sha256_of_tree
from passerelle.sending import RefusedError
from passerelle.tracking_address import (
    Address,
    check_answers,
    client_of,
    keep_id,
    kept_facts,
    without_password,
)
from passerelle.unsent import Operation

TAG = "passerelle.fingerprint"
MOST_METRICS, MOST_PARAMS, MOST_TAGS = 1000, 100, 100
"""Of one request."""
REFUSALS = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_ALREADY_EXISTS")
"""MLflow's words for what it will never do."""
KINDS = ("status", "params", "tags", "rows", "metrics", "dataset", "files", "text", "model", "watch")
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


class MlflowRun:
    """Carries out operations for one run, in the sender's thread."""

    def __init__(self, address: Address, *, remembers_steps: bool = False) -> None:
        """remembers_steps: the steps that the run holds are asked for once, since no other process adds any now."""
        self._address = address
        self._remembers_steps = remembers_steps
        self._client: Any = None
        self._run_id = ""
        self._steps: dict[str, set[int]] = {}
        self._monitor: Any = None

    def describe(self, error: Exception) -> str:
        """One line that names the server, without its password."""
        words = without_password(" ".join(str(error).split()))[:300]
        return f"MLflow at {without_password(self._address.uri)}: {words}"

    def perform(self, operation: Operation) -> None:
        """Raises ConnectionError where MLflow does not answer, and RefusedError where it refuses."""
        method = getattr(self, f"_{operation['what']}", None)
        if operation["what"] not in KINDS or method is None:
            raise RefusedError(f"a record of an unknown kind, {operation['what']!r}")
        check_answers(self._address.uri)
        if self._client is None:
            try:
                self._connect()
            except Exception as error:  # any of MLflow's, the database's or the network's
                raise ConnectionError(str(error)) from error
        try:
            method(**{name: value for name, value in operation.items() if name != "what"})
        except Exception as error:
            if getattr(error, "error_code", "") in REFUSALS:
                raise RefusedError(str(error)) from error
            self._client = None  # the run is looked for anew: the server may come back with another store
            raise

    def _connect(self) -> None:
        client = client_of(self._address)
        self._run_id = _kept_id(client, self._address) or _tagged_id(client, self._address)
        self._run_id = self._run_id or _new_id(client, self._address)
        keep_id(self._address, self._run_id)
        self._steps.clear()
        self._client = client

    def _status(self, status: str, milliseconds: int) -> None:
        if status == "RUNNING":
            self._client.update_run(self._run_id, status)
            return
        if self._monitor is not None:
            self._monitor.finish()
        self._client.set_terminated(self._run_id, status, milliseconds)

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
        if not self._remembers_steps:
            self._steps.clear()
        for key in {key for row in rows for key in row} - {"step"} - self._steps.keys():
            self._steps[key] = {point.step for point in self._client.get_metric_history(self._run_id, key)}
        points = [(key, row[key], int(row["step"])) for row in rows for key in row if key != "step"]
        new = [(key, value, step) for key, value, step in points if step not in self._steps[key]]
        for part in _parts(new, MOST_METRICS):
            self._points(part, milliseconds)
            for key, _, step in part:
                self._steps[key].add(step)

    def _metrics(self, values: Mapping[str, float], milliseconds: int) -> None:
        self._points([(key, value, 0) for key, value in values.items()], milliseconds)
        shown = self._client.get_run(self._run_id).data.metrics
        behind = [key for key, value in values.items() if math.isfinite(value) and shown[key] != value]
        if behind:  # the clock was put back: of one step, MLflow shows the number with the latest time
            points = [point for key in behind for point in self._client.get_metric_history(self._run_id, key)]
            after = max(point.timestamp for point in points) + 1
            self._points([(key, values[key], 0) for key in behind], after)

    def _points(self, points: Iterable[tuple[str, float, int]], milliseconds: int) -> None:
        from mlflow.entities import Metric

        finite = [
            Metric(key, value, milliseconds, step) for key, value, step in points if math.isfinite(value)
        ]
        for part in _parts(finite, MOST_METRICS):
            self._client.log_batch(self._run_id, metrics=part)

    def _dataset(self, context: str, path: str, digest: str, counts: Mapping[str, float]) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        name = f"{self._address.experiment}/{Path(path).name}"
        source, profile = json.dumps({"uri": path}), json.dumps(counts)
        dataset = Dataset(name=name, digest=digest[:16], source_type="local", source=source, profile=profile)
        inputs = [DatasetInput(dataset, [InputTag("mlflow.data.context", context)])]
        self._client.log_inputs(self._run_id, datasets=inputs)

    def _files(self, path: str, folder: str, sha256: str) -> None:
        _check_unchanged(path, sha256)
        log = self._client.log_artifacts if Path(path).is_dir() else self._client.log_artifact
        log(self._run_id, path, folder)

    def _text(self, text: str, name: str) -> None:
        self._client.log_text(self._run_id, text, name)

    def _model(self, path: str, sentences: list[str], sha256: str) -> None:
        import mlflow
        from mlflow.models import Model

        run = self._client.get_run(self._run_id)
        experiment_id = run.info.experiment_id
        for model in self._client.search_logged_models([experiment_id], f"source_run_id = '{self._run_id}'"):
            if model.status == "READY":
                return
            self._client.delete_logged_model(model.model_id)  # left by a process that died while sending it
        _check_unchanged(path, sha256)
        mlflow.set_tracking_uri(self._address.uri)
        package = Path(__file__).parent
        new = self._client.create_logged_model(
            experiment_id, "model", source_run_id=self._run_id, params=run.data.params
        )
        Model.log(
            artifact_path=None,
            flavor=mlflow.pyfunc,
            name="model",
            run_id=self._run_id,
            model_id=new.model_id,
            python_model=str(package / "pyfunc_model.py"),
            artifacts={"model": path},
            code_paths=[str(package)],
            input_example=sentences,
            pip_requirements=[f"{name}=={version(name).partition('+')[0]}" for name in MODEL_LIBRARIES],
        )

    def _watch(self) -> None:
        from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

        self._monitor = SystemMetricsMonitor(
            self._run_id, resume_logging=True, tracking_uri=self._address.uri
        )
        self._monitor.start()


def _check_unchanged(path: str, sha256: str) -> None:
    """Raises RefusedError where the files are gone, or another run has put its own there."""
    if not Path(path).exists():
        raise RefusedError(f"{path} is gone before it could be sent")
    if sha256_of_tree(Path(path)) != sha256:
        raise RefusedError(f"{path} has changed before it could be sent")


def _kept_id(client: Any, address: Address) -> str:
    """The id that an earlier stage or start wrote down, where the server knows it."""
    from mlflow.exceptions import MlflowException

    run_id = kept_facts(address.run_folder).get("run_id")
    if not run_id:
        return ""
    try:
        run = client.get_run(run_id)
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return ""
        raise
    return str(run_id) if run.info.lifecycle_stage == "active" else ""


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
    tags = {TAG: address.fingerprint, "mlflow.source.name": "passerelle", "mlflow.source.type": "LOCAL"}
    begun = kept_facts(address.run_folder).get("begun")
    run = client.create_run(experiment_id, begun, tags, address.run_name)
    return str(run.info.run_id)


def _parts(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
