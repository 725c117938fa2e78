"""Where runs are recorded: the MLflow server of the environment, else a database in the root."""

import json
import logging
import os
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from passerelle.files import write_json
from passerelle.run_folder import repository_root

DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "15",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}
SQLITE = "sqlite:///"
ARTIFACT_ROOT = "_MLFLOW_SERVER_ARTIFACT_ROOT"
"""MLflow's variable for where artifacts go in a database that it opens itself; without it, into ./mlruns."""
PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}
CONNECT_SECONDS = 3.0
ID_FILE = "mlflow.json"
ID_SECONDS = 60.0


@dataclass(frozen=True)
class Address:
    """Where one run is recorded."""

    uri: str = field(repr=False)
    """Of the tracking server or database; may hold a password."""
    experiment: str
    fingerprint: str
    run_folder: Path
    """For what is kept on this machine: the run's id, what could not be sent."""
    environment: Mapping[str, str] = field(repr=False)
    """The variables that MLflow reads."""


def address_of(fingerprint: str, run_folder: Path) -> Address:
    """`$MLFLOW_TRACKING_URI`, else `mlflow.db` in the root, with `mlartifacts/` beside it.

    The experiment is `$MLFLOW_EXPERIMENT_NAME`, else the working folder's name, and `passerelle` in the root.
    """
    root = repository_root()
    variables = {name: value for name, value in os.environ.items() if name.startswith("MLFLOW_")}
    uri = variables.get("MLFLOW_TRACKING_URI") or f"sqlite:///{root / 'mlflow.db'}"
    store = Path(uri.removeprefix(SQLITE)).parent if uri.startswith(SQLITE) else root
    here, top = Path.cwd().resolve(), Path(os.environ.get("DVC_ROOT") or root).resolve()
    return Address(
        uri=uri,
        experiment=variables.get("MLFLOW_EXPERIMENT_NAME")
        or ("passerelle" if here in (root, top) else here.name),
        fingerprint=fingerprint,
        run_folder=run_folder,
        environment={**DEFAULTS, ARTIFACT_ROOT: str(store.resolve() / "mlartifacts"), **variables},
    )


def kept_id(address: Address) -> str:
    """The id that an earlier stage or start wrote down for the run; empty where there is none."""
    path = address.run_folder / ID_FILE
    return str(json.loads(path.read_text(encoding="utf-8"))["run_id"]) if path.is_file() else ""


def keep_id(address: Address, run_id: str) -> None:
    """Write the id down for later stages and other processes."""
    write_json(address.run_folder / ID_FILE, {"run_id": run_id, "experiment": address.experiment})


def awaited_id(address: Address) -> str:
    """The id, once the process that makes the run has written it down."""
    end = time.monotonic() + ID_SECONDS
    while not (run_id := kept_id(address)):
        if time.monotonic() > end:
            raise TimeoutError(f"no run was made in {ID_SECONDS:.0f} s")
        time.sleep(0.2)
    return run_id


def check_answers(uri: str) -> None:
    """Raises ConnectionError, in seconds, where the address names a machine that does not answer.

    MLflow itself would try for minutes. Behind a proxy nothing is checked.
    """
    parts = urlsplit(uri)
    scheme = parts.scheme.partition("+")[0]
    if scheme not in PORTS or not parts.hostname:
        return
    if scheme in getproxies() and not proxy_bypass(parts.hostname):
        return
    try:
        socket.create_connection((parts.hostname, parts.port or PORTS[scheme]), CONNECT_SECONDS).close()
    except OSError as error:
        raise ConnectionError(f"does not answer ({error})") from None


def client_of(address: Address) -> Any:
    """MLflow's client for the address. Imports MLflow, which takes seconds."""
    for name, value in address.environment.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    for library in ("mlflow", "alembic"):
        logging.getLogger(library).setLevel(logging.getLogger().getEffectiveLevel())
    return MlflowClient(address.uri)


def without_password(text: str) -> str:
    """The text with `user:password@` of every address in it left out."""
    return re.sub(r"(?<=://)[^/\s]*@", "", text)
