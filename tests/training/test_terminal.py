"""What training says on the terminal."""

import io
import json
from pathlib import Path

import pytest

from passerelle.training import terminal
from passerelle.training.checkpoint import checkpoint_name
from passerelle.training.loop import Progress
from passerelle.training.terminal import (
    LiveLine,
    beginning,
    duration,
    ending,
    progress_line,
    progress_writer,
    read_progress,
    validation_line,
    write_event,
)
from passerelle.training.workers import Workers

PROGRESS = Progress(step=120, max_steps=3000, loss=4.3214, tokens_per_second=18412.3, seconds_left=372.0)
LINE = "step 120/3000  loss 4.321  18,412 tokens/s  6 min left"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_of_progress() -> None:
    assert progress_line(vars(PROGRESS)) == LINE


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (89, "89 s"), (91, "2 min"), (5399, "1 h 30 min"), (11_000, "3 h 03 min")],
)
def test_a_duration_is_told_as_people_tell_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_line_of_validation_names_the_best() -> None:
    metrics = {"valid_loss": 3.21, "valid_perplexity": 24.779, "best_valid_loss": 3.21, "skipped_steps": 0}
    assert (
        validation_line(250, metrics)
        == "validation at step 250: loss 3.210, perplexity 24.8, the best so far"
    )
    assert validation_line(250, metrics | {"best_valid_loss": 3.0}).endswith("perplexity 24.8")


def test_skipped_steps_are_told(tmp_path: Path) -> None:
    assert progress_line(vars(PROGRESS) | {"skipped_steps": 1}) == f"{LINE}  1 step skipped"
    metrics = {"valid_loss": 3.21, "valid_perplexity": 24.8, "best_valid_loss": 3.0, "skipped_steps": 12}
    assert validation_line(250, metrics).endswith("perplexity 24.8, 12 steps skipped")


def test_progress_is_written_whole_and_not_more_than_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert terminal.WRITE_SECONDS == 1.0
    monkeypatch.setattr(terminal, "WRITE_SECONDS", 3600.0)  # longer than a busy machine may halt this test
    write = progress_writer(tmp_path)
    write(PROGRESS)
    write(Progress(130, 3000, 4.0, 1.0, 1.0))
    assert [path.name for path in tmp_path.iterdir()] == ["progress.json"]
    assert json.loads((tmp_path / "progress.json").read_text()) == vars(PROGRESS)


def test_a_terminal_has_one_live_line_and_lines_that_stay(tmp_path: Path) -> None:
    output = Terminal()
    with LiveLine(tmp_path, output):
        progress_writer(tmp_path)(PROGRESS)
        write_event(tmp_path, "validation at step 120")
    written = output.getvalue()
    assert written.count("\n") == 1
    assert "validation at step 120\n" in written
    assert f"\r{LINE}" in written
    assert written.endswith("\r" + " " * len(LINE) + "\r")  # wiped at the end


def test_elsewhere_progress_comes_in_lines(tmp_path: Path) -> None:
    output = io.StringIO()
    with LiveLine(tmp_path, output):
        progress_writer(tmp_path)(PROGRESS)
    assert output.getvalue() == f"{LINE}\n"


def test_lines_come_seldom_where_they_stay(tmp_path: Path) -> None:
    output = io.StringIO()
    line = LiveLine(tmp_path, output)
    for step in (10, 20, 30):
        progress_writer(tmp_path)(Progress(step, 3000, 4.0, 1.0, 1.0))
        line._print_news()
    assert output.getvalue().count("\n") == 1


def test_what_an_earlier_start_said_is_not_repeated(tmp_path: Path) -> None:
    write_event(tmp_path, "old")
    progress_writer(tmp_path)(PROGRESS)
    output = io.StringIO()
    with LiveLine(tmp_path, output):
        write_event(tmp_path, "new")
    assert output.getvalue() == "new\n"


def test_a_half_written_event_waits_for_its_end(tmp_path: Path) -> None:
    output = io.StringIO()
    line = LiveLine(tmp_path, output)
    (tmp_path / "events.jsonl").write_text('{"text": "wh')
    line._print_news()
    assert output.getvalue() == ""
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write('ole"}\n')
    line._print_news()
    assert output.getvalue() == "whole\n"


def test_an_event_after_a_torn_one_is_told(tmp_path: Path) -> None:
    """As a kill, a full disk or a lost machine leave the file."""
    output = io.StringIO()
    line = LiveLine(tmp_path, output)
    for torn in (b'{"text": "to', b"\0\0\0", b'{"text": "\xc3', b"[]\n17", b'{"other": 1}'):
        with (tmp_path / "events.jsonl").open("ab") as file:
            file.write(torn)
        write_event(tmp_path, f"after {len(torn)} bytes")
    line._print_news()
    assert output.getvalue() == "".join(f"after {number} bytes\n" for number in (12, 3, 11, 5, 12))


@pytest.mark.parametrize("content", [b"", b'{"step": 12', b"\0\0\0", b"17", b'"\xc3'])
def test_torn_progress_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "progress.json").write_bytes(content)
    assert read_progress(tmp_path) is None
    assert ending(tmp_path).startswith("stopped before the first step, ")
    LiveLine(tmp_path, io.StringIO())._print_news()


def test_training_goes_on_where_nothing_can_be_shown(tmp_path: Path) -> None:
    """A full disk and a folder that is gone or read-only alike; a checkpoint would say so."""
    gone = tmp_path / "gone"
    write_event(gone, "text")
    progress_writer(gone)(PROGRESS)
    (tmp_path / ".progress.json").symlink_to("/dev/full")
    (tmp_path / "events.jsonl").symlink_to("/dev/full")
    write_event(tmp_path, "text")
    progress_writer(tmp_path)(PROGRESS)
    assert read_progress(tmp_path) is None


def test_the_beginning_says_where_it_goes_on(tmp_path: Path) -> None:
    workers, folder = Workers(2, use_gpu=False, threads=1), tmp_path / "abc"
    text = beginning(folder, None, workers, {"CPU": 2})
    assert text == "training run abc on 2 CPU workers, from the beginning"
    one = Workers(1, use_gpu=True, threads=4, note="why")
    text = beginning(folder, folder / checkpoint_name(250), one, {"CPU": 4, "GPU": 1})
    assert text == "training run abc on 1 GPU worker, going on from step 250\nwhy"


def test_the_beginning_says_what_is_waited_for(tmp_path: Path) -> None:
    text = beginning(tmp_path, None, Workers(3, use_gpu=True, threads=4), {"CPU": 7, "GPU": 3})
    assert text.endswith("beginning\nwaiting for others: 7 of 12 CPUs needed are free")


def test_the_end_says_how_to_go_on(tmp_path: Path) -> None:
    assert ending(tmp_path) == (
        "stopped before the first step, no checkpoint yet; run `dvc repro` again to continue"
    )
    (tmp_path / checkpoint_name(100)).mkdir()
    progress_writer(tmp_path)(PROGRESS)
    assert ending(tmp_path) == (
        "stopped at step 120, last checkpoint at step 100; run `dvc repro` again to continue"
    )
    (tmp_path / checkpoint_name(123)).mkdir()  # progress is not noted at each step
    assert ending(tmp_path).startswith("stopped at step 123, last checkpoint at step 123; ")
