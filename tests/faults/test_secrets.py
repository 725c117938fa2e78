"""Passwords in the addresses of MLflow and of the corpus reach no file, no message and no log, with -v neither."""

import base64
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest
from pydantic import ValidationError

from mlflow_server import MlflowServer
from passerelle.config import CorpusConfig
from passerelle.corpus.phrasebook import phrasebook_pairs
from passerelle.params_file import fault_lines
from source_imports import ROOT
from stage_process import Place, place_of, write_params

PASSWORD, TOKEN = "open/sesame-4711", "shibboleth-0815"
LOGIN = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()
SECRETS = (PASSWORD, quote(PASSWORD, safe=""), TOKEN, LOGIN)
ADDRESS = "${CORPUS_USER}:${CORPUS_PASSWORD}@127.0.0.1:{port}/pairs.txt?token=${CORPUS_TOKEN}"
VARIABLES = {"CORPUS_USER": "ada", "CORPUS_PASSWORD": PASSWORD, "CORPUS_TOKEN": TOKEN}

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries below MLflow warn of one another


class Guarded(BaseHTTPRequestHandler):
    """Gives the phrasebook to who knows both secrets; says nothing of MLflow's."""

    text = "".join(f"{source}\t{target}\n" for source, target in phrasebook_pairs()).encode()

    def do_GET(self) -> None:
        knows = self.headers["Authorization"] == f"Basic {LOGIN}" and self.path.endswith(f"?token={TOKEN}")
        is_there = self.path.startswith("/pairs.txt")
        self.send_response(404 if not is_there else 200 if knows else 401)
        self.end_headers()
        self.wfile.write(self.text if knows else b"")

    def log_message(self, *arguments: object) -> None:
        """Nothing: the test's output stays readable."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def said(command: list[str], place: Place, status: int, **variables: str) -> str:
    """What the command prints, which must hold no secret."""
    environment = {**place.environment, "no_proxy": "*", "PYTHONUNBUFFERED": "1", **variables}
    process = subprocess.run(
        command, cwd=place.folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    output = process.stdout + process.stderr
    assert not [secret for secret in SECRETS if secret in output], output
    assert process.returncode == status, output
    return output


def files_with_secrets(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [str(path) for path in files if any(secret.encode() in path.read_bytes() for secret in SECRETS)]


def test_the_password_of_the_corpus_stays_in_the_environment(port: int, store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pipeline"
    folder.mkdir()
    place = place_of(
        folder,
        store,
        PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin",
        DVC_NO_ANALYTICS="1",
        DVC_SITE_CACHE_DIR=str(tmp_path / "dvc"),
    )
    write_params(folder, f"http://{ADDRESS.replace('{port}', str(port))}")
    shutil.copy(ROOT / "dvc.yaml", folder)
    dvc = [sys.executable, "-m", "dvc"]
    said([*dvc, "init", "--no-scm", "-q"], place, 0)
    said([*dvc, "repro", "-v", "fetch"], place, 0, **VARIABLES)
    assert (folder / "data/raw/pairs.txt").read_bytes() == Guarded.text
    assert "${CORPUS_PASSWORD}@127.0.0.1" in (folder / "dvc.lock").read_text()

    fetch = place.command("fetch")
    absent = "the environment variable CORPUS_USER, which corpus.urls names, is not set"
    assert absent in said(fetch, place, 1)
    assert "401 Unauthorized" in said([*fetch, "-v"], place, 1, **VARIABLES | {"CORPUS_USER": "eve"})
    write_params(folder, f"http://{ADDRESS.replace('{port}/pairs', f'{port}/absent')}")
    assert "404 Not Found" in said([*fetch, "-v"], place, 1, **VARIABLES)
    assert files_with_secrets(tmp_path) == []

    for address in (f"ada:{PASSWORD}@127.0.0.1/a", f"127.0.0.1/a?token={TOKEN}"):
        write_params(folder, f"http://{address}")
        assert "would be copied into dvc.lock, and so into git; write ${NAME}" in said(fetch, place, 1)
        text = (folder / "params.yaml").read_text().replace("- http://", "  http://")  # no list
        (folder / "params.yaml").write_text(text)
        assert "corpus.urls: input should be a valid list" in said([*fetch, "-v"], place, 1)


@pytest.mark.parametrize(
    "url",
    [
        f"https://ada:{PASSWORD}@host/file",
        f"https://{TOKEN}@host/file",
        f"https://${{USER}}:{TOKEN}@host/file",
        f"http://[ada:{TOKEN}@host/file",
        f"https://host:8080/file?token={TOKEN}",
        f"https://host/file?download=1&X-Amz-Signature={TOKEN}",
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ValidationError, match="a password or token") as raised:
        CorpusConfig(name="pairs", origin="file", attribution="ours", urls=[url])
    (line,) = fault_lines(raised.value, CorpusConfig)
    assert line.startswith("urls.0: a password or token would be copied into dvc.lock")
    assert not [secret for secret in SECRETS if secret in line]


@pytest.mark.parametrize(
    "url",
    [
        "https://${USER}:${PASSWORD}@host/pairs@1.0.zip",
        "https://host:8080/pairs@1.0.zip?download=1",
        "https://host/file?token=${TOKEN}&size=3",
    ],
)
def test_an_address_without_secrets_is_taken(url: str) -> None:
    assert CorpusConfig(name="pairs", origin="file", attribution="ours", urls=[url]).urls == [url]


def test_the_password_of_an_mlflow_server_is_nowhere(finished: Place, store: Path, tmp_path: Path) -> None:
    place = Place(tmp_path / "pipeline", {**finished.environment, "PASSERELLE_RUNS": str(tmp_path / "runs")})
    shutil.copytree(finished.folder, place.folder, ignore=shutil.ignore_patterns("runs"))
    server = MlflowServer(store.parent)
    uri = server.uri.replace("//", f"//ada:{quote(PASSWORD, safe='')}@")
    record = [sys.executable, str(Path(__file__).with_name("recording_stage.py")), "-v"]
    assert "kept in" in said(record, place, 0, MLFLOW_TRACKING_URI=uri)  # no server yet
    server.start()
    try:
        said(place.command("evaluate", "-v"), place, 0, MLFLOW_TRACKING_URI=uri)
        sync = said(
            [str(Path(sys.executable).with_name("passerelle")), "sync"], place, 0, MLFLOW_TRACKING_URI=uri
        )
        assert "nothing to send" in sync  # evaluate has sent it
    finally:
        server.close()
    assert list(store.parent.glob("mlartifacts/*/*/artifacts/evaluation/report.html"))
    assert list(store.parent.glob("mlartifacts/*/*/artifacts/plots/training.csv"))
    assert list(store.parent.glob("mlartifacts/*/models/*/artifacts/MLmodel"))
    assert files_with_secrets(tmp_path) == []


def test_the_password_of_a_database_is_nowhere(finished: Place, port: int, tmp_path: Path) -> None:
    place = Place(tmp_path / "pipeline", {**finished.environment, "PASSERELLE_RUNS": str(tmp_path / "runs")})
    shutil.copytree(finished.folder, place.folder, ignore=shutil.ignore_patterns("runs"))
    record = [sys.executable, str(Path(__file__).with_name("recording_stage.py")), "-v"]
    where = f"127.0.0.1:{port}/runs?password={TOKEN}"  # somebody answers there, but no database
    for password in (PASSWORD, quote(PASSWORD, safe="")):
        uri = f"postgresql://ada:{password}@{where}"
        assert "MLflow at postgresql://127.0.0.1" in said(record, place, 0, MLFLOW_TRACKING_URI=uri)
        sync = [str(Path(sys.executable).with_name("passerelle")), "sync"]
        assert "remain: MLflow at postgresql://127.0.0.1" in said(sync, place, 1, MLFLOW_TRACKING_URI=uri)
    assert files_with_secrets(tmp_path) == []
