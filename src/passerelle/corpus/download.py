"""A file from an http address, streamed to disk. No message shows the address's password or query."""

import base64
import http.client
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

from passerelle.files import CHUNK_BYTES

USER_AGENT = "passerelle (sentence-pair corpus fetch; Python urllib)"

_SAFE = "/?%~:@!$&'()*+,;="
_TIMEOUT_SECONDS = 30.0
_PROGRESS_SECONDS = 0.5


class DownloadError(ValueError):
    """An address gave no file; the message says which and why, without its secrets."""


def download(url: str, destination: Path, max_bytes: int) -> None:
    """Write what `url` gives to `destination`, `max_bytes` at most, with a progress line on stderr.

    A user and password in `url` are sent as basic authentication, to that host alone. `${NAME}` in it stands for the
    environment variable NAME.
    """
    shown = without_secrets(url)
    request = _request(_filled_in(url), shown)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
            _save(response, destination, max_bytes, shown)
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(f"{shown}: the server answered {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise DownloadError(f"{shown}: {error.reason}") from None
    except TimeoutError:
        raise DownloadError(f"{shown}: no answer within {_TIMEOUT_SECONDS:.0f} s") from None
    except (http.client.HTTPException, ConnectionError) as error:
        raise DownloadError(f"{shown}: the request failed ({type(error).__name__})") from None


def without_secrets(url: str) -> str:
    """`url` without user, password, query and fragment, as messages show it."""
    parts = _split(url)
    shown = urllib.parse.urlunsplit((parts.scheme, _host(parts), parts.path, "", ""))
    return f"{shown}?…" if parts.query else shown


def _filled_in(url: str) -> str:
    """`url` with the values of the variables that it names, percent-encoded."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise DownloadError(
                f"{without_secrets(url)}: the environment variable {match[1]}, which corpus.urls names, is not set"
            )
        return urllib.parse.quote(os.environ[match[1]], safe="")

    return re.sub(r"\$\{(\w+)\}", value, url)


def _request(url: str, shown: str) -> urllib.request.Request:
    parts = _split(url)
    if parts.scheme not in ("http", "https"):
        raise DownloadError(f"{shown}: not an http or https address; correct corpus.urls")
    path, query = (urllib.parse.quote(part, safe=_SAFE) for part in (parts.path, parts.query))
    bare = urllib.parse.urlunsplit((parts.scheme, _host(parts), path, query, ""))
    request = urllib.request.Request(bare, headers={"User-Agent": USER_AGENT})
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    if user or password:
        plain = f"{urllib.parse.unquote(user)}:{urllib.parse.unquote(password)}"
        token = base64.b64encode(plain.encode()).decode()
        # Unredirected: another host must not be handed the password.
        request.add_unredirected_header("Authorization", f"Basic {token}")
    return request


def _split(url: str) -> urllib.parse.SplitResult:
    try:
        return urllib.parse.urlsplit(url)
    except ValueError:
        raise DownloadError("an address in corpus.urls is not valid; correct it in params.yaml") from None


def _host(parts: urllib.parse.SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _save(response: http.client.HTTPResponse, destination: Path, max_bytes: int, shown: str) -> None:
    expected = response.length or 0
    show = _progress_line(shown, expected)
    num_bytes = 0
    with destination.open("wb") as file:
        while chunk := response.read1(CHUNK_BYTES):
            num_bytes += len(chunk)
            if num_bytes > max_bytes:
                raise DownloadError(
                    f"{shown}: more than corpus.max_bytes={max_bytes} bytes; fetching stopped"
                )
            file.write(chunk)
            show(num_bytes, False)
    show(num_bytes, True)
    if num_bytes < expected:
        raise DownloadError(f"{shown}: the connection broke after {num_bytes} of {expected} bytes")


def _progress_line(shown: str, expected: int) -> Callable[[int, bool], None]:
    """A function of (bytes so far, whether that is all): one line on stderr, live on a terminal."""
    last = time.monotonic()
    total = f" of {expected / 1e6:.1f}" if expected else ""

    def show(num_bytes: int, is_done: bool) -> None:
        nonlocal last
        is_due = sys.stderr.isatty() and time.monotonic() - last > _PROGRESS_SECONDS
        if is_done or is_due:
            last = time.monotonic()
            start = "\r" if sys.stderr.isatty() else ""
            end = "\n" if is_done else ""
            print(f"{start}{shown}: {num_bytes / 1e6:.1f}{total} MB", end=end, file=sys.stderr, flush=True)

    return show
