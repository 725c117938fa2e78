"""What training says on the terminal: one live line, and a line for each validation.

Worker 0 writes `progress.json` and `events.jsonl` into the run folder, wherever in the cluster it is; a
thread beside the driver reads and prints them. Neither file is needed for training: where one cannot be written, on
a full disk say, or was torn when a process was killed, its line is missing and nothing else.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from passerelle.training.checkpoint import checkpoint_folders, checkpoint_step
from passerelle.training.workers import Workers

if TYPE_CHECKING:
    from passerelle.training.loop import Progress  # loads torch

PROGRESS, EVENTS = "progress.json", "events.jsonl"
WRITE_SECONDS = 1.0
"""Shortest time between two notes of progress."""
READ_SECONDS = 0.5
PLAIN_SECONDS = 10.0
"""Between two lines of progress where the output is not a terminal."""


def progress_writer(run_folder: Path) -> "Callable[[Progress], None]":
    """Notes progress in the run folder, at most once a second."""
    last = -WRITE_SECONDS

    def write(progress: "Progress") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= WRITE_SECONDS:
            last = now
            temporary = run_folder / f".{PROGRESS}"
            with suppress(OSError):
                temporary.write_text(json.dumps(vars(progress)), encoding="utf-8")
                temporary.replace(run_folder / PROGRESS)

    return write


def write_event(run_folder: Path, text: str) -> None:
    """Have the driver print a line."""
    with suppress(OSError), (run_folder / EVENTS).open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps({"text": text}) + "\n")  # the first ends a line that was torn


def read_progress(run_folder: Path) -> dict[str, Any] | None:
    """The last note of progress, where there is a whole one."""
    try:
        progress = json.loads((run_folder / PROGRESS).read_bytes())
    except (OSError, ValueError):
        return None
    return progress if isinstance(progress, dict) else None


def progress_line(progress: dict[str, Any]) -> str:
    """`step 120/3000  loss 4.321  18,400 tokens/s  6 min left`."""
    return (
        f"step {progress['step']}/{progress['max_steps']}  loss {progress['loss']:.3f}  "
        f"{progress['tokens_per_second']:,.0f} tokens/s  {duration(progress['seconds_left'])} left"
        + _skipped(progress["skipped_steps"], "  ")
    )


def validation_line(step: int, metrics: Mapping[str, float]) -> str:
    """`validation at step 250: loss 3.210, perplexity 24.8, BLEU 12.3, the best so far`."""
    note = ", the best so far" if metrics["valid_loss"] <= metrics["best_valid_loss"] else ""
    loss, perplexity = metrics["valid_loss"], metrics["valid_perplexity"]
    bleu = f", BLEU {metrics['valid_bleu']:.1f}" if "valid_bleu" in metrics else ""
    skipped = _skipped(metrics["skipped_steps"], ", ")
    return f"validation at step {step}: loss {loss:.3f}, perplexity {perplexity:,.1f}{bleu}{note}{skipped}"


def _skipped(number: float, before: str) -> str:
    """How many steps had no finite gradient so far; nothing where none."""
    plural = "" if number == 1 else "s"
    return f"{before}{number:.0f} step{plural} skipped" if number else ""


def beginning(run_folder: Path, latest: Path | None, workers: Workers, free: Mapping[str, float]) -> str:
    """What is said before the first step. free: the resources that nobody else uses."""
    kind = "GPU" if workers.use_gpu else "CPU"
    plural = "" if workers.number == 1 else "s"
    where = f"going on from step {checkpoint_step(latest)}" if latest else "from the beginning"
    lines = [f"training run {run_folder.name} on {workers.number} {kind} worker{plural}, {where}"]
    if workers.note:
        lines.append(workers.note)
    for name, amount in workers.resources.items():
        needed = amount * workers.number
        if free.get(name, 0) < needed:
            lines.append(
                f"waiting for others: {free.get(name, 0):.0f} of {needed:.0f} {name}s needed are free"
            )
    return "\n".join(lines)


def ending(run_folder: Path) -> str:
    """What is said when the user stops training."""
    progress, folders = read_progress(run_folder), checkpoint_folders(run_folder)
    kept = checkpoint_step(folders[-1]) if folders else 0
    step = max(progress["step"] if progress else 0, kept)
    where = f"stopped at step {step}" if step else "stopped before the first step"
    last = f"last checkpoint at step {kept}" if folders else "no checkpoint yet"
    return f"{where}, {last}; run `dvc repro` again to continue"


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


class LiveLine:
    """A context in which a thread prints what the run folder's files newly say."""

    def __init__(self, run_folder: Path, output: TextIO | None = None) -> None:
        """output: the standard output, unless given."""
        self._run_folder = run_folder
        self._output = output or sys.stdout
        self._is_terminal = self._output.isatty()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="live line", daemon=True)
        self._lock = threading.Lock()
        self._width = 0
        self._next_plain = 0.0
        self._shown: dict[str, Any] | None = None
        (run_folder / PROGRESS).unlink(missing_ok=True)
        self._read_bytes = self._size_of_events()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._print_news()
        self._overwrite("")

    def say(self, text: str) -> None:
        """Print a line that stays."""
        with self._lock:
            self._overwrite("")
            print(text, file=self._output, flush=True)

    def _watch(self) -> None:
        while not self._ended.wait(READ_SECONDS):
            self._print_news()

    def _print_news(self) -> None:
        for text in self._new_events():
            self.say(text)
        progress = read_progress(self._run_folder)
        if progress is None or progress == self._shown:
            return
        if self._is_terminal:
            with self._lock:
                self._overwrite(progress_line(progress))
        elif time.monotonic() >= self._next_plain:
            self._next_plain = time.monotonic() + PLAIN_SECONDS
            print(progress_line(progress), file=self._output, flush=True)
        self._shown = progress

    def _overwrite(self, text: str) -> None:
        """Replace the live line by the text."""
        if self._is_terminal:
            print(f"\r{text:<{self._width}}", end="" if text else "\r", file=self._output, flush=True)
            self._width = len(text)

    def _new_events(self) -> list[str]:
        if self._size_of_events() <= self._read_bytes:
            return []
        with (self._run_folder / EVENTS).open("rb") as file:
            file.seek(self._read_bytes)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        return [text for line in whole.splitlines() if (text := _text(line))]

    def _size_of_events(self) -> int:
        path = self._run_folder / EVENTS
        return path.stat().st_size if path.is_file() else 0


def _text(line: bytes) -> str:
    """Of an event; empty for what is none, torn or damaged."""
    try:
        return str(json.loads(line)["text"])
    except (ValueError, KeyError, TypeError):
        return ""
