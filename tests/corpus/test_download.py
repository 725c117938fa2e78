"""Downloads: size limit, broken connections, and passwords that no message shows."""

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from passerelle.corpus.download import USER_AGENT, DownloadError, download, without_secrets

CONTENT = b"Go.\tVa !\n" * 1000


class _Answers(BaseHTTPRequestHandler):
    """Answers that a test asks for by path; remembers the headers of each request."""

    headers_seen: ClassVar[list[dict[str, str]]] = []

    def do_GET(self) -> None:
        self.headers_seen.append(dict(self.headers))
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "/file")
            self.end_headers()
        elif self.path.startswith("/file") or self.path == "/donn%C3%A9es":
            self._send(200, len(CONTENT))
        elif self.path == "/short":
            self._send(200, len(CONTENT) + 1)
        elif self.path == "/unsaid":
            self._send(200, None)
        else:
            self._send(404, len(CONTENT))

    def _send(self, status: int, length: int | None) -> None:
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, *arguments: object) -> None:
        """Nothing: the test's output stays readable."""


@contextmanager
def _serving() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "*")
    _Answers.headers_seen.clear()
    with _serving() as address:
        yield address


@pytest.mark.parametrize("path", ["file", "moved", "unsaid", "données", "file?key=s3cret"])
def test_a_file_arrives_whole(
    host: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    download(f"http://{host}/{path}", tmp_path / "file", len(CONTENT))
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert _Answers.headers_seen[0]["User-Agent"] == USER_AGENT
    progress = capsys.readouterr().err
    assert host in progress
    assert progress.endswith("MB\n")
    assert "s3cret" not in progress


@pytest.mark.parametrize("path", ["file", "unsaid"])
def test_a_file_over_the_limit_is_refused(host: str, path: str, tmp_path: Path) -> None:
    limit = len(CONTENT) - 1
    with pytest.raises(DownloadError, match=rf"/{path}: more than corpus\.max_bytes={limit} bytes"):
        download(f"http://{host}/{path}", tmp_path / "file", limit)
    assert (tmp_path / "file").stat().st_size <= limit


def test_a_connection_that_ends_early_is_told(host: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"/short: the connection broke after 9000 of 9001 bytes"):
        download(f"http://{host}/short", tmp_path / "file", 10**6)


def test_a_refusal_by_the_server_is_told_without_password(host: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=rf"^http://{host}/absent\?…: the server answered 404 Not Found$"):
        download(f"http://tom:s3cret@{host}/absent?key=s3cret", tmp_path / "file", 10**6)


def test_a_password_goes_to_its_own_host_alone(host: str, tmp_path: Path) -> None:
    download(f"http://tom:s3cret%20%C3%A9@{host}/moved", tmp_path / "file", 10**6)
    first, second = _Answers.headers_seen
    assert first["Authorization"] == "Basic " + base64.b64encode("tom:s3cret é".encode()).decode()
    assert "Authorization" not in second


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://tom:s3cret@x.org/a", r"^ftp://x\.org/a: not an http or https address; correct corpus\.urls$"),
        ("file:///etc/passwd", r"^file:///etc/passwd: not an http or https address"),
        ("fra-eng.zip", r"^fra-eng\.zip: not an http or https address"),
        ("http://[tom:s3cret", r"^an address in corpus\.urls is not valid; correct it in params\.yaml$"),
        ("http://tom:s3cret@/a", r"^http:///a: "),
        ("http://tom:s3cret@127.0.0.1:x/a", r"^http://127\.0\.0\.1:x/a: the request failed \(InvalidURL\)$"),
        ("http://tom:s3cret@127.0.0.1:1/a?key=s3cret", r"^http://127\.0\.0\.1:1/a\?…: .*refused"),
    ],
)
def test_an_address_that_cannot_work_is_refused_without_its_secrets(
    url: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(DownloadError, match=message) as raised:
        download(url, tmp_path / "file", 10**6)
    assert "s3cret" not in str(raised.value)


def test_secrets_are_taken_out_of_an_address() -> None:
    assert without_secrets("https://u:p@h.org:8/a/b.zip?token=1#f") == "https://h.org:8/a/b.zip?…"
    assert without_secrets("https://h.org/a") == "https://h.org/a"
