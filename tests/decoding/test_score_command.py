"""`passerelle score`: one row of numbers for each pair of lines."""

import argparse
import math
from pathlib import Path

import pytest

from passerelle.commands import score as module
from passerelle.decoding.forced import score
from passerelle.model_folder import load_model
from small_model import SOURCES, TARGETS, write_small_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("small"))


def run(model: Path, sources: bytes, targets: bytes, folder: Path) -> None:
    (folder / "source.txt").write_bytes(sources)
    (folder / "target.txt").write_bytes(targets)
    parser = argparse.ArgumentParser()
    module.add(parser.add_subparsers())
    names = [str(folder / "source.txt"), str(folder / "target.txt")]
    arguments = parser.parse_args(["score", *names, "--model", str(model)])
    arguments.run(arguments)


def test_each_pair_of_lines_has_its_row(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINES_AT_ONCE", 2)
    sources = [SOURCES[0], "", f"{SOURCES[4]}\u2028", "🦊", SOURCES[7], ""]
    targets = [TARGETS[0], "", TARGETS[3], "\t", "ქართული", TARGETS[1]]
    run(model, "\r\n".join(sources).encode() + b"\n", "\n".join(targets).encode(), tmp_path)
    head, *rows = capfd.readouterr().out.splitlines()
    assert head == "log_prob\tmean\ttokens"
    expected = score(load_model(model), sources, targets)
    assert len(rows) == len(expected) == 6
    for row, log_probs in zip(rows, expected, strict=True):
        total, mean, count = row.split("\t")
        assert int(count) == len(log_probs)
        if log_probs and log_probs[0] > -math.inf:
            assert float(total) == pytest.approx(sum(log_probs), abs=1e-3)
            assert float(mean) == pytest.approx(sum(log_probs) / len(log_probs), abs=1e-3)
    assert rows[1] == "0.0000\t0.0000\t0"
    assert rows[5].startswith("-inf\t-inf\t")


def test_files_of_different_length_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"source.txt has 2 lines, but .*target.txt 3; each line needs its"):
        run(model, b"a\nb\n", b"a\nb\n\n", tmp_path)


def test_a_file_that_is_not_utf8_is_named(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"target.txt, line 2: not UTF-8 at byte 4; save it as UTF-8"):
        run(model, b"a\nb\n", "a\ncafé\n".encode("latin1"), tmp_path)


def test_nothing_has_the_head_alone(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(model, b"", b"", tmp_path)
    assert capfd.readouterr().out == "log_prob\tmean\ttokens\n"
