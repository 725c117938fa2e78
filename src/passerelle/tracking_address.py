"""Where runs are recorded: the MLflow server of the environment, else a database in the root."""

import json
import logging
import os
import re
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

from passerelle.files import write_json
from passerelle.run_folder import repository_root

logger = logging.getLogger(__name__)

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
USER, PASSWORD = "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"
PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}
CONNECT_SECONDS = 5.0
ID_FILE = "mlflow.json"


@dataclass(frozen=True)
class Address:
    """Where one run is recorded."""

    uri: str = field(repr=False)
    """Of the tracking server or database; may hold a password."""
    experiment: str
    fingerprint: str
    run_name: str
    run_folder: Path
    """For what is kept on this machine: the run's id, what could not be sent."""
    environment: Mapping[str, str] = field(repr=False)
    """The variables that MLflow reads; those of a login in the address go before the process's own."""


def address_of(fingerprint: str, run_folder: Path) -> Address:
    """`$MLFLOW_TRACKING_URI`, else `mlflow.db` in the root, with `mlartifacts/` beside it.

    The experiment is that of the run's earlier stages, else `$MLFLOW_EXPERIMENT_NAME`, else the working folder's
    name, and `passerelle` in the root. A user and password in an http address are handed to MLflow beside it, so
    that none of its messages shows them.
    """
    root = repository_root()
    variables = {name: value for name, value in os.environ.items() if name.startswith("MLFLOW_")}
    uri, login = _login_apart(variables.pop("MLFLOW_TRACKING_URI", "") or f"sqlite:///{root / 'mlflow.db'}")
    store = Path(uri.removeprefix(SQLITE)).parent if uri.startswith(SQLITE) else root
    here, top = Path.cwd().resolve(), Path(os.environ.get("DVC_ROOT") or root).resolve()
    facts = kept_facts(run_folder)
    return Address(
        uri=uri,
        experiment=facts.get("experiment")
        or variables.get("MLFLOW_EXPERIMENT_NAME")
        or ("passerelle" if here in (root, top) else here.name),
        fingerprint=fingerprint,
        run_name=facts.get("name") or os.environ.get("DVC_EXP_NAME") or fingerprint,
        run_folder=run_folder,
        environment={**DEFAULTS, ARTIFACT_ROOT: str(store.resolve() / "mlartifacts"), **variables, **login},
    )


def _login_apart(uri: str) -> tuple[str, dict[str, str]]:
    """The address without user and password, and the variables by which MLflow takes them."""
    parts = urlsplit(uri)
    login, _, host = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    if parts.scheme not in ("http", "https") or not (user and password):
        return uri, {}
    return parts._replace(netloc=host).geturl(), {USER: unquote(user), PASSWORD: unquote(password)}


def kept_facts(run_folder: Path) -> dict[str, Any]:
    """What an earlier stage or start wrote down of the run: experiment, name, when it began, its id; may be empty."""
    path = run_folder / ID_FILE
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):  # the run is found by its tag
        logger.warning("%s: cannot be read; the run is looked for by its fingerprint", path)
        return {}
    return facts if isinstance(facts, dict) else {}


def begin_facts(address: Address) -> None:
    """Write down what the run is to be called, in case another process must make it, much later."""
    if not kept_facts(address.run_folder):
        facts = {"experiment": address.experiment, "name": address.run_name, "begun": int(time.time() * 1000)}
        write_json(address.run_folder / ID_FILE, facts)


def keep_id(address: Address, run_id: str) -> None:
    """Write the id down for later stages and other processes."""
    facts = kept_facts(address.run_folder)
    if facts.get("run_id") != run_id:
        write_json(
            address.run_folder / ID_FILE, {"experiment": address.experiment, **facts, "run_id": run_id}
        )


def check_answers(uri: str) -> None:
    """Raises ConnectionError, in seconds, where the address names a machine that does not answer.

    MLflow itself would try for minutes. Any answer will do, also that of a proxy.
    """
    parts = urlsplit(uri)
    scheme = parts.scheme.partition("+")[0]
    if scheme not in PORTS or not parts.hostname:
        return
    try:
        if scheme in ("http", "https"):
            url = parts._replace(
                netloc=parts.netloc.rpartition("@")[2], path=f"{parts.path.rstrip('/')}/health"
            )
            urlopen(url.geturl(), timeout=CONNECT_SECONDS).close()
        else:
            address = (parts.hostname, parts.port or PORTS[scheme])
            socket.create_connection(address, CONNECT_SECONDS).close()
    except HTTPError as error:
        error.close()
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        if not isinstance(reason, ssl.SSLError):  # MLflow may have been told to trust it
            raise ConnectionError(f"does not answer ({reason})") from None


def client_of(address: Address) -> Any:
    """MLflow's client for the address. Imports MLflow, which takes seconds."""
    for name, value in address.environment.items():
        if name in (USER, PASSWORD):
            os.environ[name] = value
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    for library in ("mlflow", "alembic"):
        logging.getLogger(library).setLevel(logging.getLogger().getEffectiveLevel())
    return MlflowClient(address.uri)


def without_password(text: str) -> str:
    """The text with `user:password@` and the query of every address in it left out."""
    return re.sub(r"(://[^\s?]*)\?[^\s)]*", r"\1?…", re.sub(r"(?<=://)\S*@", "", text))
