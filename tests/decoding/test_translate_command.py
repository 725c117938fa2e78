"""`passerelle translate`: one line out for each line in, whatever stands in it."""

import io
import random
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from changed_model import with_other_words
from passerelle.cli import main
from passerelle.commands.loading import load_decoding
from passerelle.decoding.ensemble import load_ensemble
from passerelle.decoding.processes import VARIABLE
from passerelle.decoding.translate import translate, translate_n_best
from passerelle.model_folder import load_model
from small_model import RECURRENT, SOURCES, write_small_model

ROOT = Path(__file__).parents[2]
PARAMS = (ROOT / "params.yaml").read_text(encoding="utf-8")
DRAW = random.Random(1)
WORDS = [word for source in SOURCES for word in source.rstrip(".!?").split()]
SENTENCES_2000 = " ".join(
    " ".join(DRAW.choices(WORDS, k=8)).capitalize() + DRAW.choice(".!?") for _ in range(250)
)
WORDS_2000 = " ".join(DRAW.choices(WORDS, k=2000))
LINES = {
    "empty": b"",
    "spaces": b"   ",
    "only spaces of other kinds": "\u00a0\u202f\u3000\u2003".encode(),
    "only invisible characters": "\u200b\ufeff\u200e".encode(),
    "one character": b"a",
    "one mark": b".",
    "emoji": "🦊🦊 👨‍👩‍👧 🏳️‍🌈".encode(),
    "script never seen": "ქართული ენა და 漢字".encode(),
    "tabs": b"\tWe\tsee\t\ta boat.\t",
    "a line of a table": b"We see\ta boat.\t12",
    "carriage return at the end": b"We see a boat.\r",
    "carriage return inside": b"We see\ra boat.",
    "line separator": "We see\u2028a boat.\u2029You sell ten plums.\u0085".encode(),
    "vertical tab and form feed": b"We\x0bsee\x0ca boat.\x1c",
    "null character": b"We \x00see a boat.",
    "several sentences": b"We see a boat. You sell ten plums!",
    "2,000 words in sentences": SENTENCES_2000.encode(),
    "2,000 words in one sentence": WORDS_2000.encode(),
    "a word of 5,000 letters": b"boat" * 1250,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Beside params.yaml, which asks for short translations."""
    folder = tmp_path_factory.mktemp("small")
    write_params(folder)
    return write_small_model(folder)


def write_params(folder: Path, **changes: str) -> None:
    params = PARAMS
    for key, value in {"max_length": "30", "beam_size": "2", **changes}.items():
        [line] = [line for line in params.splitlines() if line.startswith(f"  {key}: ")]
        params = params.replace(line, f"  {key}: {value}")
    (folder / "params.yaml").write_text(params, encoding="utf-8")


def run(
    content: bytes, arguments: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    """What the command writes to standard output and error for this standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    main(["translate", *arguments])
    captured = capfd.readouterr()
    return captured.out, captured.err


@pytest.mark.parametrize("name", LINES)
def test_a_line_has_its_line(
    name: str, model: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output, _ = run(LINES[name] + b"\n", ["--model", str(model)], capfd, monkeypatch)
    assert output.count("\n") == 1
    assert output.endswith("\n")
    assert (output == "\n") == (name in ("empty", "spaces") or name.startswith("only "))
    assert not set(output) & set("\r\t\v\f\x1c\x85\u2028\u2029\x00")


@pytest.fixture(scope="module")
def expected(model: Path) -> Callable[[bytes], list[str]]:
    """The translations of all LINES and a last one."""

    @cache
    def of(last: bytes) -> list[str]:
        lines = [line.decode() for line in LINES.values()] + ([last.decode().rstrip("\n")] if last else [])
        return [translation.text for translation in translate(load_model(model), lines, load_decoding(model))]

    return of


@pytest.mark.parametrize("separator", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [b"", b"\n", b"We see a boat."])
def test_all_lines_together_have_theirs_in_order(
    separator: bytes,
    last: bytes,
    model: Path,
    expected: Callable[[bytes], list[str]],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = b"".join(line + separator for line in LINES.values()) + last
    output, _ = run(content, ["--model", str(model)], capfd, monkeypatch)
    assert output.split("\n") == [*expected(last), ""]


def test_nothing_has_no_line(
    model: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(b"", ["--model", str(model)], capfd, monkeypatch) == ("", "")


def test_the_installed_command_answers_bytes_with_bytes(model: Path) -> None:
    content = b"We see a boat.\r\n\n\xf0\x9f\xa6\x8a\xe2\x80\xa8a\n \t\nno"
    command = [
        sys.executable,
        "-c",
        "from passerelle.cli import main; main()",
        "translate",
        "--model",
        str(model),
    ]
    answer = subprocess.run(command, input=content, capture_output=True, check=True)
    lines = answer.stdout.split(b"\n")
    assert len(lines) == 6
    assert (lines[1], lines[3], lines[5]) == (b"", b"", b"")
    assert all((lines[0], lines[2], lines[4]))


def test_a_long_line_is_translated_whole_in_parts(
    model: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    [whole] = translate(load_model(model), [SENTENCES_2000], load_decoding(model))
    assert whole.num_parts == 250
    assert not whole.is_cut
    output, errors = run(SENTENCES_2000.encode(), ["--model", str(model)], capfd, monkeypatch)
    assert output == f"{whole.text}\n"
    assert errors == "warning: line 1: the translation was cut in one of its parts\n"


def test_a_long_line_is_cut_with_a_warning_where_the_params_say_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = write_small_model(tmp_path)
    write_params(tmp_path, long_lines="cut", max_source_tokens="9")
    content = f"We.\n\n{WORDS_2000}\n".encode()
    output, errors = run(content, ["--model", str(model)], capfd, monkeypatch)
    assert output.count("\n") == 3
    expected = "warning: line 3: only its first 9 tokens were translated (decoding.long_lines is cut)"
    assert [line for line in errors.splitlines() if "first 9" in line] == [expected]


def test_n_best_writes_number_rank_score_and_text(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_small_model(tmp_path)
    write_params(tmp_path, beam_size="4", max_length="7")
    content = f"{SOURCES[0]}\n\n{SOURCES[5]}\n".encode()
    arguments = ["--model", str(tmp_path / "model")]
    output, _ = run(content, [*arguments, "--n-best", "3"], capfd, monkeypatch)
    rows = [line.split("\t") for line in output.splitlines()]
    loaded, config = load_model(tmp_path / "model"), load_decoding(tmp_path / "model")
    first, _, last = translate_n_best(loaded, [SOURCES[0], "", SOURCES[5]], config, 3)
    expected = [["1", str(rank), f"{t.score:.4f}", t.text] for rank, t in enumerate(first, start=1)]
    expected.append(["2", "1", "0.0000", ""])
    expected += [["3", str(rank), f"{t.score:.4f}", t.text] for rank, t in enumerate(last, start=1)]
    assert rows == expected
    assert len(rows) == 7
    best, _ = run(content, arguments, capfd, monkeypatch)
    assert best.splitlines() == [row[3] for row in rows if row[1] == "1"]
    one, _ = run(content, [*arguments, "--n-best", "1"], capfd, monkeypatch)
    assert [line.split("\t")[3] for line in one.splitlines()] == best.splitlines()


def test_several_models_translate_together(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [model, write_small_model(tmp_path, RECURRENT)]
    names = [argument for folder in folders for argument in ("--model", str(folder))]
    output, _ = run("\n".join(SOURCES[:9]).encode(), [*names, "--n-best", "2"], capfd, monkeypatch)
    expected = translate_n_best(load_ensemble(folders), SOURCES[:9], load_decoding(model), 2)
    texts = [(f"{t.score:.4f}", t.text) for translations in expected for t in translations]
    assert [tuple(line.split("\t")[2:]) for line in output.splitlines()] == texts


def test_two_processes_write_what_one_does(
    model: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passerelle.commands.translate.LINES_AT_ONCE", 7)
    content = b"\n".join(line for line in LINES.values() if len(line) < 100)
    one = run(content, ["--model", str(model)], capfd, monkeypatch)
    monkeypatch.setenv(VARIABLE, "2")
    assert run(content, ["--model", str(model)], capfd, monkeypatch) == one


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--n-best", "3"],
            "3 translations of each sentence are asked for, but decoding.beam_size is 2: raise it",
        ),
        (["--model", "absent"], "absent: not a model folder"),
        (["--model", "model", "--model", "absent"], "absent: not a model folder"),
        (["--model", "model", "--model", "other"], "other: its tokenizer is not that of model"),
        (["latin1.txt"], "latin1.txt, line 2: not UTF-8 at byte 4; save it as UTF-8"),
    ],
)
def test_a_fault_is_one_readable_line(
    arguments: list[str], message: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "latin1.txt").write_bytes("a\ncafé\n".encode("latin1"))
    (tmp_path / "model").symlink_to(model)
    (tmp_path / "other").symlink_to(with_other_words(model, tmp_path / "words"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"We see a boat.\n")))
    with pytest.raises(SystemExit) as stopped:
        main(["translate", *arguments])
    assert str(stopped.value).startswith(f"error: {message}")
    assert "\n" not in str(stopped.value)


@pytest.mark.parametrize("count", ["0", "-2", "many"])
def test_a_count_that_is_none_is_refused(count: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["translate", "--n-best", count])
    assert f"--n-best: must be a number from 1 on, but is '{count}'" in capfd.readouterr().err
