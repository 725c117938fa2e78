"""Operations are performed in order, or kept in order, and nobody waits. A crash at any moment loses none."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from passerelle import sending
from passerelle.sending import RefusedError, Sender
from passerelle.unsent import keep, kept_files

DEATHS = Path(__file__).with_name("deaths_of_sender.py")


class Server:
    """Performs operations, except while it is away or fails at a kind."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.tries = 0
        self.is_away = False
        self.fails_at = ""

    def perform(self, operation: Any) -> None:
        self.tries += 1
        if operation["n"] < 0:
            raise RefusedError(f"no {operation['n']}")
        if self.is_away:
            raise ConnectionError("away")
        if operation.get("what") == self.fails_at:
            raise RuntimeError(f"error 500 at {self.fails_at}")
        self.done.append(operation["n"])


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def start(server: Server, kept: Path) -> Sender:
    return Sender(server.perform, kept, lambda error: f"server: {error}")


def numbers(kept: Path) -> list[int]:
    return [json.loads(path.read_text())["n"] for path in kept_files(kept)]


def test_operations_are_performed_in_order(kept: Path) -> None:
    server = Server()
    sender = start(server, kept)
    for number in range(7):
        sender.send({"n": number})
    sender.close()
    assert server.done == list(range(7))
    assert (sender.num_sent, sender.num_left_out) == (7, 0)
    assert numbers(kept) == []


def test_after_a_failure_nothing_is_tried_for_a_while(kept: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.is_away = True
    sender = start(server, kept)
    sender.send({"n": 0})
    sender.drain(60.0)
    for number in range(1, 5):
        sender.send({"n": number})
    sender.drain(60.0)
    assert server.tries == 1
    assert numbers(kept) == list(range(5))
    assert [record.message for record in caplog.records] == [
        f"server: away; what it misses is kept in {kept} and sent later"
    ]
    sender.close()
    assert server.tries == 2  # once more at the end
    assert numbers(kept) == list(range(5))


def test_after_the_pause_the_oldest_is_tried_first(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "PAUSE_SECONDS", 0.01)
    server = Server()
    server.is_away = True
    sender = start(server, kept)
    for number in range(3):
        sender.send({"n": number})
    sender.drain(60.0)
    server.is_away = False
    sender.send({"n": 3})
    sender.close()
    assert server.done == [0, 1, 2, 3]


def test_what_was_kept_is_sent_first_and_in_order(kept: Path) -> None:
    server = Server()
    for number in range(1, 12):  # more than one digit
        keep(kept, {"n": number})
    sender = start(server, kept)
    sender.send({"n": 12})
    sender.close()
    assert server.done == list(range(1, 13))
    assert numbers(kept) == []


def test_what_was_kept_is_sent_at_the_end_where_the_server_is_back(kept: Path) -> None:
    server = Server()
    server.is_away = True
    sender = start(server, kept)
    sender.send({"n": 1})
    sender.drain(60.0)
    keep(kept, {"n": 2})  # by another process, which has died since
    server.is_away = False
    sender.close()
    assert server.done == [1, 2]


def test_a_kind_that_fails_holds_up_no_other(kept: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.fails_at = "model"
    sender = start(server, kept)
    for number, what in enumerate(("tags", "model", "tags", "model", "status")):
        sender.send({"what": what, "n": number})
    sender.close()
    assert server.done == [0, 2, 4]
    assert numbers(kept) == [1, 3]  # in their order
    assert "error 500 at model; what it misses is kept" in caplog.text


def test_what_is_refused_is_said_and_left_out(kept: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    sender = start(server, kept)
    for number in (-1, 2, -1):
        sender.send({"n": number})
    sender.close()
    assert server.done == [2]
    assert (sender.num_sent, sender.num_left_out) == (1, 2)
    assert numbers(kept) == []
    assert [record.message for record in caplog.records] == ["server: no -1; left out"]


def test_what_only_this_process_can_do_is_not_kept(kept: Path) -> None:
    server = Server()
    server.is_away = True
    sender = start(server, kept)
    sender.send({"n": 1}, is_kept=False)
    sender.drain(60.0)
    assert numbers(kept) == []
    server.is_away = False
    sender.close()
    assert server.done == [1]


def test_what_cannot_be_kept_is_sent_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    server = Server()
    sender = start(server, tmp_path / "file")  # where a folder should be
    sender.send({"n": 1})
    sender.close()
    assert server.done == [1]
    assert "cannot be written (File exists), so what MLflow misses may be lost" in caplog.text


@pytest.mark.parametrize("content", ["", '{"n": 2', "[2]", "\x00\x00"])
def test_a_damaged_record_is_said_and_set_aside(
    kept: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    keep(kept, {"n": 1})
    damaged = keep(kept, {"n": 2})
    keep(kept, {"n": 3})
    damaged.write_text(content)
    start(server, kept).close()
    assert server.done == [1, 3]
    (message,) = [record.message for record in caplog.records]
    assert f"{damaged}: damaged" in message
    assert damaged.with_suffix(".damaged").read_text() == content


def test_what_is_repeated_at_each_start_is_kept_once(kept: Path) -> None:
    server = Server()
    server.is_away = True
    for start_number in range(3):
        sender = start(server, kept)
        sender.send({"what": "tags", "n": 1, "milliseconds": start_number})
        sender.send({"what": "rows", "n": 2, "rows": [{"step": step} for step in range(start_number + 1)]})
        sender.send({"what": "status", "n": 3 + start_number})
        sender.close()
    start(server, kept).close()
    assert numbers(kept) == [3, 4, 1, 2, 5]
    assert len(json.loads(kept_files(kept)[3].read_text())["rows"]) == 3


def test_two_senders_send_each_record_once(kept: Path) -> None:
    for number in range(20):
        keep(kept, {"n": number})
    first, second = Server(), Server()
    senders = [start(server, kept) for server in (first, second)]  # at once, and both know of all
    for sender in senders:
        sender.close()
    assert sorted(first.done + second.done) == list(range(20))


def test_nobody_waits_for_a_server_that_hangs(kept: Path, caplog: pytest.LogCaptureFixture) -> None:
    release = threading.Event()
    sender = Sender(lambda operation: release.wait() and None, kept, str)
    sender.send({"n": 1})
    sender.drain(0.01)
    sender.close(0.01)
    assert numbers(kept) == [1]
    assert "not all could be sent in 0 s; what it misses is kept" in caplog.text
    release.set()


def test_death_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    """A process is killed before each of its operations on files, one after the other; another one goes on."""
    script = subprocess.run(
        [sys.executable, DEATHS, tmp_path], capture_output=True, text=True, check=True, timeout=600
    )
    deaths = [json.loads(line) for line in script.stdout.splitlines()]
    assert len(deaths) > 30
    for death in deaths:
        done, begun = death["done"], death["begun"]
        assert set(range(3)) | set(begun) <= set(done), (
            death
        )  # what was kept before, and each that was taken over
        assert list(dict.fromkeys(done)) == sorted(set(done)), death  # in order
        assert len(done) - len(set(done)) <= 1, death  # the one in whose midst it died was done twice
