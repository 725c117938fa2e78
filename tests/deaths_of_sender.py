"""Kills a process that sends, before its first, second, ... operation on files; tells what the server then has.

For test_sending: `python deaths_of_sender.py FOLDER` prints a line of JSON for each death.
"""

import json
import os
import signal
import sys
from itertools import count
from pathlib import Path

from passerelle.sending import Sender
from passerelle.unsent import keep

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "fcntl.flock")


def work(folder: Path, operations: range) -> None:
    """Send the operations, to a file that stands for the server; note each that was taken over."""

    def perform(operation: object) -> None:
        append(folder / "server", operation)

    sender = Sender(perform, folder / "kept", str)
    for number in operations:
        sender.send({"n": number})
        append(folder / "begun", {"n": number})
    sender.close()


def append(path: Path, operation: object) -> None:
    with path.open("a") as file:
        file.write(json.dumps(operation) + "\n")


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["n"] for line in path.read_text().splitlines()] if path.exists() else []


def in_a_process(folder: Path, operations: range, dies_before: int | None) -> bool:
    """Whether the process came to its end."""
    child = os.fork()
    if child == 0:
        events = count(1)

        def die(event: str, arguments: tuple[object, ...]) -> None:
            if event in EVENTS and next(events) == dies_before:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(die)
        work(folder, operations)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def main(folder: Path) -> None:
    for dies_before in count(1):
        place = folder / str(dies_before)
        for number in (0, 1, 1, 2):  # as earlier processes left it, one record repeated
            keep(place / "kept", {"n": number})
        is_over = in_a_process(place, range(3, 6), dies_before)
        in_a_process(place, range(0), None)
        print(json.dumps({"begun": numbers(place / "begun"), "done": numbers(place / "server")}))
        if is_over:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
