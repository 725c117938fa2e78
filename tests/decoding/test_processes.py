"""Several processes translate what one does, and leave none behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from passerelle.config import DecodingConfig
from passerelle.decoding import processes as module
from passerelle.decoding.processes import num_processes, translation_processes
from passerelle.decoding.translate import translate, translate_n_best
from phrasebook_model import Phrasebook
from small_model import SOURCES, write_small_model

BEAM, GREEDY = DecodingConfig(beam_size=5), DecodingConfig(beam_size=1)


def test_two_processes_translate_like_one(phrasebook: Phrasebook) -> None:
    sentences = ["", *phrasebook.sources, " \t", "Never seen: 🦊."]
    done: list[int] = []
    with translation_processes([phrasebook.folder], 2) as translate_n:
        for config, num_best in ((BEAM, 1), (BEAM, 3), (GREEDY, 1)):
            found = translate_n(sentences, config, num_best, done.append)
            expected = translate_n_best(phrasebook.loaded, sentences, config, num_best)
            assert [[t.ids for t in row] for row in found] == [[t.ids for t in row] for row in expected]
            assert [[t.text for t in row] for row in found] == [[t.text for t in row] for row in expected]
            scores = [[t.score for row in rows for t in row] for rows in (found, expected)]
            assert scores[0] == pytest.approx(scores[1], abs=1e-4)
            assert [row[0].source for row in found] == sentences
        with pytest.raises(ValueError, match=r"9 translations .* but decoding.beam_size is 5"):
            translate_n(sentences, BEAM, 9)
    assert sum(done) == 3 * len(sentences)
    assert len(done) > 3


def test_a_short_text_is_translated_in_this_process(
    tmp_path: Path, phrasebook: Phrasebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ProcessPoolExecutor", None)  # calling it would fail
    sources = phrasebook.sources[:20]
    with translation_processes([phrasebook.folder], num_processes(len(sources), GREEDY)) as translate_n_best:
        found = [best for best, *_ in translate_n_best(sources, GREEDY)]
    assert found == translate(phrasebook.loaded, sources, GREEDY)


@pytest.mark.parametrize(
    ("num_sentences", "beam_size", "asked", "expected"),
    [
        (0, 5, None, 1),
        (100, 5, None, 1),
        (1_000_000, 5, None, 3),
        (1_000_000, 5, "auto", 3),
        (1_000_000, 5, "1", 1),
        (1_000_000, 5, "2", 2),
        (1, 1, "2", 2),
        (1_000_000, 1, "64", 3),
        (2 * module.HYPOTHESES_OF_A_PROCESS - 1, 1, None, 1),
        (2 * module.HYPOTHESES_OF_A_PROCESS, 1, None, 2),
        (module.HYPOTHESES_OF_A_PROCESS, 2, None, 2),
    ],
)
def test_processes_are_at_most_one_a_core_and_as_many_as_pay(
    num_sentences: int, beam_size: int, asked: str | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 5})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv(module.VARIABLE, raising=False)
    if asked:
        monkeypatch.setenv(module.VARIABLE, asked)
    assert num_processes(num_sentences, DecodingConfig(beam_size=beam_size)) == expected


def test_a_gpu_is_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv(module.VARIABLE, "2")
    assert num_processes(1_000_000, BEAM) == 1


@pytest.mark.parametrize("asked", ["0", "-1", "two", ""])
def test_a_number_of_processes_that_is_none_is_refused(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.VARIABLE, asked)
    with pytest.raises(
        ValueError, match=f"PASSERELLE_DECODING_PROCESSES must be auto or .* but is '{asked}'"
    ):
        num_processes(5, BEAM)


def test_a_model_that_is_absent_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="absent: not a model folder"),
        translation_processes([tmp_path / "absent"], 2) as translate_n,
    ):
        translate_n(SOURCES, GREEDY)


def exit_at_once(*_: object) -> None:
    os._exit(3)


def test_the_end_of_a_process_is_one_readable_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_small_model(tmp_path)
    monkeypatch.setattr(module, "_translated", exit_at_once)
    with (
        pytest.raises(ChildProcessError, match=r"has ended by itself .* PASSERELLE_DECODING_PROCESSES=1"),
        translation_processes([folder], 2) as translate_n,
    ):
        translate_n(SOURCES, GREEDY)


ENDLESS = """
import os, sys
from pathlib import Path
from passerelle.config import DecodingConfig
from passerelle.decoding.processes import translation_processes

if __name__ == "__main__":
    with translation_processes([Path(sys.argv[1])], 2) as translate:
        translate(["We see a boat."], DecodingConfig(beam_size=1))
        print("begun", flush=True)
        while True:
            translate(["We see a boat."] * 50, DecodingConfig(beam_size=1))
"""


def test_processes_end_with_the_one_that_began_them(tmp_path: Path) -> None:
    folder = write_small_model(tmp_path)
    (tmp_path / "endless.py").write_text(ENDLESS, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "endless.py"), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "begun\n"
        parent.kill()
        parent.communicate(timeout=300)  # reads until the last of them has closed its output
