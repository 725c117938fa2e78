"""The summary shows what a run gave, and says what is missing where it is not there."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from passerelle.summary import NUM_SAMPLES, main, summary

METRICS: dict[str, Any] = {
    "corpus": {
        "read": 11_303,
        "rejected": {"total": 7, "empty line": 7},
        "train": {"rows": 10_633, "sentences": 9_499},
        "valid": {"rows": 299, "sentences": 299},
        "test": {"rows": 301, "sentences": 301},
    },
    "training": {
        "steps": 600,
        "train_seconds": 119.6,
        "tokens_per_second": 12_345.6,
        "parameters": 1_234_567,
    },
    "evaluation": {
        **{"bleu": 78.26, "bleu_low": 74.0, "bleu_high": 81.96},
        **{"chrf": 88.04, "chrf_low": 86.5, "chrf_high": 89.5},
        **{"sentences": 301, "references": 337},
    },
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished pipeline run, as far as the summary reads it."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "metrics").mkdir()
    for name, content in METRICS.items():
        (tmp_path / f"metrics/{name}.json").write_text(json.dumps(content), encoding="utf-8")
    attention = tmp_path / "evaluation/attention"
    attention.mkdir(parents=True)
    for name in ("1-cross.png", "2-cross.png", "1.safetensors"):
        (attention / name).write_bytes(b"")
    (tmp_path / "evaluation/report.html").write_text("<!doctype html>", encoding="utf-8")
    write_translations(tmp_path, 23)
    return tmp_path


def write_translations(folder: Path, count: int) -> None:
    rows = [
        {
            "source": f"Is it {number}?",
            "hypothesis": f"Est-ce {number}\u202f?",
            "references": [],
            "score": 1.5,
        }
        for number in range(count)
    ]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "evaluation/translations.jsonl").write_text(text, encoding="utf-8")


def test_the_summary_shows_what_a_run_gave(folder: Path) -> None:
    assert summary(folder).splitlines() == [
        "Corpus        11,303 lines read, 7 rejected; 10,633 pairs to train on,",
        "              299 sentences to validate and 301 to test",
        "Training      600 steps in 2 min 00 s, 12,346 tokens/s, 1,234,567 parameters",
        "BLEU          78.3, 95 % interval 74.0 to 82.0, on 301 test sentences with 337 references",
        "chrF          88.0, 95 % interval 86.5 to 89.5",
        "Translations",
        "  Is it 0?   →  Est-ce 0\u202f?",
        "  Is it 4?   →  Est-ce 4\u202f?",
        "  Is it 9?   →  Est-ce 9\u202f?",
        "  Is it 13?  →  Est-ce 13\u202f?",
        "  Is it 18?  →  Est-ce 18\u202f?",
        f"Attention     2 pictures in {folder}/evaluation/attention/",
        f"Report        {folder}/evaluation/report.html",
        "All runs      `make ui`, then http://localhost:5000",
    ]


def test_a_run_without_pictures_names_none(folder: Path) -> None:
    for path in folder.rglob("*.png"):
        path.unlink()
    assert "Attention" not in summary(folder)


@pytest.mark.parametrize("count", [1, NUM_SAMPLES - 1, NUM_SAMPLES])
def test_few_translations_are_all_shown_once(folder: Path, count: int) -> None:
    write_translations(folder, count)
    shown = [line for line in summary(folder).splitlines() if "→" in line]
    assert len(shown) == len(set(shown)) == count


def test_the_address_of_a_server_is_shown_without_its_password(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://anna:secret@mlflow.example:5000/base")
    last = summary(folder).splitlines()[-1]
    assert last == "All runs      recorded by MLflow at https://mlflow.example:5000/base"


@pytest.mark.parametrize(
    "name", [*(f"metrics/{name}.json" for name in METRICS), "evaluation/translations.jsonl"]
)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"{name}: no such file; run `dvc repro` for this folder first"):
        summary(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"corpus\.json: not JSON \(.*\); run `dvc repro` again"),
        ("[]", r"corpus\.json: expected a number at read, found None; run"),
        ('{"read": 3}', r"corpus\.json: expected a number at rejected\.total, found None; run"),
        ('{"read": true}', r"corpus\.json: expected a number at read, found True; run"),
        ('{"read": "3"}', r"corpus\.json: expected a number at read, found '3'; run"),
        (
            '{"read": 3, "rejected": 4}',
            r"corpus\.json: expected a number at rejected\.total, found None; run",
        ),
    ],
)
def test_metrics_of_another_form_are_refused(folder: Path, content: str, message: str) -> None:
    (folder / "metrics/corpus.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        summary(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"translations\.jsonl: no translations; run `dvc repro` again"),
        ('{"source": "a", "hypothesis": "b"}\n{"source": "a"}\n', r"jsonl:2: not a translation \(KeyError"),
        ('{"source": "a", "hypothe', r"jsonl:1: not a translation \(JSONDecodeError"),
        ("[]", r"jsonl:1: not a translation \(TypeError"),
    ],
)
def test_translations_of_another_form_are_refused(folder: Path, content: str, message: str) -> None:
    (folder / "evaluation/translations.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        summary(folder)


def test_the_command_line_prints_the_summary_or_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["summary", str(folder)])
    main()
    assert capsys.readouterr().out == summary(folder) + "\n"
    monkeypatch.setattr(sys, "argv", ["summary", str(folder / "nowhere")])
    with pytest.raises(SystemExit, match=r"^error: .*nowhere/evaluation/translations\.jsonl: no such file"):
        main()
    monkeypatch.setattr(sys, "argv", ["summary"])
    with pytest.raises(SystemExit, match=r"^usage: python -m passerelle\.summary FOLDER"):
        main()


def test_the_module_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "passerelle.summary", "."]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr.startswith("error: evaluation/translations.jsonl: no such file")
