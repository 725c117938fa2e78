"""The command line: one line out for each line in, and faults that a user can read."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from passerelle.cli import main
from passerelle.config import DecodingConfig
from passerelle.decoding.translate import translate
from passerelle.model_folder import load_model
from small_model import SOURCES, write_small_model

ROOT = Path(__file__).parents[1]
PARAMS = (ROOT / "params.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In a folder without params.yaml."""
    return write_small_model(tmp_path_factory.mktemp("small"))


def translated(model: Path, lines: list[str], decoding: DecodingConfig | None = None) -> list[str]:
    return [t.text for t in translate(load_model(model), lines, decoding or DecodingConfig())]


def test_every_line_of_a_file_has_its_line(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    content = f"{SOURCES[0]}\r\n\n  \n{SOURCES[1]}\u2028{SOURCES[2]}\x0b\rno\n\U0001f98a\t\n{SOURCES[3]}"
    (tmp_path / "lines.txt").write_bytes(content.encode())
    main(["translate", "--model", str(model), str(tmp_path / "lines.txt")])
    lines = [SOURCES[0], "", "  ", f"{SOURCES[1]}\u2028{SOURCES[2]}\x0b\rno", "\U0001f98a\t", SOURCES[3]]
    output = capfd.readouterr().out
    assert output == "".join(f"{text}\n" for text in translated(model, lines))
    assert output.count("\n") == 6


def test_standard_input_is_translated_like_a_file(
    model: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = SOURCES[:7]
    monkeypatch.setattr("passerelle.commands.translate.LINES_AT_ONCE", 3)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("".join(f"{x}\n" for x in lines).encode())))
    main(["translate", "--model", str(model)])
    assert capfd.readouterr().out.splitlines() == translated(model, lines)


def test_a_cut_translation_names_its_line(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lines.txt").write_text(f"\n{SOURCES[0]}\n", encoding="utf-8")
    main(["translate", "--model", str(model), str(tmp_path / "lines.txt")])
    [translation] = translate(load_model(model), [SOURCES[0]], DecodingConfig())
    assert not translation.is_finished
    expected = f"warning: line 2: the translation was cut at {len(translation.ids)} tokens\n"
    assert capfd.readouterr().err == expected


def test_params_beside_the_model_say_how_to_decode(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = write_small_model(tmp_path)
    params = PARAMS.replace("max_length: 200", "max_length: 6")
    (tmp_path / "params.yaml").write_text(params, encoding="utf-8")
    (tmp_path / "lines.txt").write_text(SOURCES[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    main(["translate", "lines.txt"])
    assert capfd.readouterr().out.splitlines() == translated(
        model, [SOURCES[0]], DecodingConfig(max_length=6)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate", "absent.txt"], "error: absent.txt: No such file or directory"),
        (["translate", "--model", "absent"], "error: absent: not a model folder"),
        (["translate", "latin1.txt"], "error: latin1.txt, line 2: not UTF-8 at byte 4; save it as UTF-8"),
        (["attention", " \t"], r"error: ' \t': no text, so nothing to attend to"),
    ],
)
def test_a_fault_is_one_readable_line(
    arguments: list[str], message: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "latin1.txt").write_bytes("a\ncafé\n".encode("latin1"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(model)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert str(stopped.value).startswith(message)
    assert "\n" not in str(stopped.value)


def test_help_loads_no_torch() -> None:
    code = (
        "import sys\nfrom passerelle.cli import main\ntry:\n    main(['translate', '-h'])\n"
        "except SystemExit:\n    print('torch' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "standard input" in answer.stdout
    assert answer.stdout.endswith("False\n")
