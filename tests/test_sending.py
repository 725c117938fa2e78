"""Operations are performed in order, or kept in order, and nobody waits."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from passerelle.sending import RefusedError, Sender


class Server:
    """Performs operations, except while it is away."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.tries = 0
        self.is_away = False

    def perform(self, operation: Any) -> None:
        self.tries += 1
        if operation["n"] < 0:
            raise RefusedError(f"no {operation['n']}")
        if self.is_away:
            raise ConnectionError("away")
        self.done.append(operation["n"])


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept.jsonl"


def start(server: Server, kept: Path | None) -> Sender:
    return Sender(server.perform, kept, lambda error: f"server: {error}")


def test_operations_are_performed_in_order(kept: Path) -> None:
    server = Server()
    sender = start(server, kept)
    for number in range(7):
        sender.send({"n": number})
    sender.close()
    assert server.done == list(range(7))
    assert not kept.exists()


def test_after_a_failure_nothing_is_tried_for_a_while(kept: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.is_away = True
    sender = start(server, kept)
    for number in range(5):
        sender.send({"n": number})
    sender.drain(5.0)
    assert server.tries == 1
    assert [json.loads(line)["n"] for line in kept.read_text().splitlines()] == list(range(5))
    assert [record.message for record in caplog.records] == [
        f"server: away; what it misses is kept in {kept} and sent later"
    ]
    sender.close()
    assert server.tries == 2  # once more at the end


def test_what_was_kept_is_sent_first_and_in_order(kept: Path) -> None:
    server = Server()
    kept.write_text('{"n": 1}\n{"n": 2}\n')
    sender = start(server, kept)
    sender.send({"n": 3})
    sender.close()
    assert server.done == [1, 2, 3]
    assert not kept.exists()


def test_what_was_kept_is_sent_at_the_end_where_the_server_is_back(kept: Path) -> None:
    server = Server()
    server.is_away = True
    sender = start(server, kept)
    sender.send({"n": 1})
    sender.drain(5.0)
    server.is_away = False
    sender.close()
    assert server.done == [1]


def test_what_is_refused_is_said_and_left_out(kept: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    sender = start(server, kept)
    for number in (-1, 2, -1):
        sender.send({"n": number})
    sender.close()
    assert server.done == [2]
    assert not kept.exists()
    assert [record.message for record in caplog.records] == ["server: no -1; left out"]


def test_without_a_file_failures_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.is_away = True
    sender = start(server, None)
    sender.send({"n": 1})
    sender.close()
    assert [record.message for record in caplog.records] == ["server: away"]


def test_nobody_waits_for_a_server_that_hangs(kept: Path) -> None:
    release = threading.Event()
    sender = Sender(lambda operation: release.wait() and None, kept, str)
    sender.send({"n": 1})
    sender.drain(0.01)
    sender.close(0.01)
    release.set()
