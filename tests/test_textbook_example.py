"""The textbook's last stage: its numbers are those of the translations, and its report says them."""

import csv
import json
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sacrebleu import corpus_bleu

from dvc_stages import TEXTBOOK, variants
from passerelle.config import DecodingConfig, EvaluateParams, Params
from passerelle.decoding.translate import translate
from passerelle.evaluation.chapter_bleu import chapter_bleu
from passerelle.model_folder import load_model
from passerelle.params_file import load_params
from small_model import SOURCES, TARGETS, write_small_model

CHAPTER = runpy.run_path(str(TEXTBOOK / "chapter.py"))
TRAIN = [("go.", "va !"), ("go.", "allez !"), (SOURCES[0], TARGETS[0])]
TEST = [(source, [target]) for source, target in zip(SOURCES[5:12], TARGETS[5:12], strict=True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the stages before leave it, with one small untrained model for both."""
    folder = tmp_path_factory.mktemp("textbook")
    model = write_small_model(tmp_path_factory.mktemp("small"))
    shutil.copy(TEXTBOOK / "params.yaml", folder)
    for number, name in enumerate(variants(TEXTBOOK)):
        (folder / name / "plots").mkdir(parents=True)
        shutil.copy(TEXTBOOK / name / "params.yaml", folder / name)
        shutil.copytree(model, folder / name / "model")
        with (folder / name / "plots/training.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["step", "loss"], [10, 7.5], [20, 0.3 + number]])
    (folder / "data/prepared").mkdir(parents=True)
    sources, targets = zip(*TRAIN, strict=True)
    pq.write_table(pa.table({"source": sources, "target": targets}), folder / "data/prepared/train.parquet")
    sources, references = zip(*TEST, strict=True)
    pq.write_table(
        pa.table({"source": sources, "references": references}), folder / "data/prepared/test.parquet"
    )
    return folder


@pytest.fixture
def run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], tuple[dict[str, Any], str]]:
    """Runs the stage without MLflow; gives its metrics and its report."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PASSERELLE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")

    def run() -> tuple[dict[str, Any], str]:
        CHAPTER["main"]()
        metrics = json.loads((folder / "metrics/chapter.json").read_text(encoding="utf-8"))
        return metrics, (folder / "chapter.md").read_text(encoding="utf-8")

    return run


def test_the_numbers_are_the_scores_of_the_translations(folder: Path, run: Callable[[], Any]) -> None:
    metrics, _ = run()
    loaded = load_model(folder / "transformer" / "model")
    decoding = load_params(EvaluateParams, folder / "transformer" / "params.yaml").decoding
    assert decoding != DecodingConfig()
    sides = {"train": {"go.": ["va !", "allez !"], SOURCES[0]: [TARGETS[0]]}, "test": dict(TEST)}
    for name, side in sides.items():
        found = translate(loaded, list(side), decoding)
        labels = [[CHAPTER["words"](text) for text in texts] for texts in side.values()]
        scores = [
            max(chapter_bleu(CHAPTER["words"](translation.raw), label) for label in texts)
            for translation, texts in zip(found, labels, strict=True)
        ]
        assert metrics["transformer"][f"{name}_chapter_bleu"] == pytest.approx(mean(scores), abs=1e-4)
        padded = [[*texts, None][:2] for texts in side.values()]
        sacre = corpus_bleu([t.text for t in found], [list(column) for column in zip(*padded, strict=True)])
        assert metrics["transformer"][f"{name}_bleu"] == pytest.approx(sacre.score, abs=1e-4)


def test_the_loss_is_the_last_of_the_curve_in_both_units(run: Callable[[], Any]) -> None:
    metrics, _ = run()
    by_name = dict(zip(variants(TEXTBOOK), (0.3, 1.3), strict=True))
    for name, loss in by_name.items():
        assert metrics[name]["loss"] == pytest.approx(loss)
        assert metrics[name]["loss_chapter_unit"] == pytest.approx(loss / 10)


def test_the_chapters_unit_is_a_tenth_of_nats_a_token() -> None:
    """By its own formula: each sentence's mean over 10 steps, padding zero, summed, over the count of tokens."""
    losses = [[0.9, 0.3, 0.6], [1.2, 0.5], [0.1, 0.2, 0.3, 0.4, 0.5]]
    num_tokens = sum(map(len, losses))
    of_chapter = sum(mean([*sentence, *[0.0] * (10 - len(sentence))]) for sentence in losses) / num_tokens
    nats_a_token = sum(map(sum, losses)) / num_tokens
    assert of_chapter == pytest.approx(nats_a_token / CHAPTER["NUM_STEPS"])


def test_the_report_says_what_is_in_training_and_what_was_translated(run: Callable[[], Any]) -> None:
    metrics, report = run()
    rows = [line for line in report.splitlines() if line.startswith("| `")]
    assert len(rows) == 8
    assert [row.split(" | ")[1] for row in rows] == ["yes", "yes", *["no"] * 6]
    assert rows[0].startswith("| `go .` → `va !` | yes | transformer | `")
    assert (
        "Known and new. Among the lines that the models learn are 1 of the four sentences (`go .`)" in report
    )
    assert f"| of the four, to the letter | {metrics['transformer']['exact']} | 4 |" in report
    assert "| training loss, the chapter's unit | 0.130 | 0.030 | 0.030 | 0.025 |" in report


def test_a_second_run_gives_the_same_bytes(folder: Path, run: Callable[[], Any]) -> None:
    run()
    before = [(folder / name).read_bytes() for name in ("chapter.md", "metrics/chapter.json")]
    run()
    assert [(folder / name).read_bytes() for name in ("chapter.md", "metrics/chapter.json")] == before


def test_the_example_has_the_chapters_setting() -> None:
    params = {name: load_params(Params, TEXTBOOK / name / "params.yaml") for name in variants(TEXTBOOK)}
    assert {name: one.model.name for name, one in params.items()} == {name: name for name in params}
    steps_per_epoch = 9.5  # 595 pairs in micro-batches of 32, two a step
    epochs = {name: int(one.training.max_steps / steps_per_epoch) for name, one in params.items()}
    assert epochs == {"transformer": 200, "bahdanau": 250}
    for one in params.values():
        assert (one.split.train_lines, one.cleaning.lowercase) == (600, True)
        assert (one.tokenizer.kind, one.tokenizer.min_frequency) == ("word", 2)
        assert one.shards.max_tokens + 1 == CHAPTER["NUM_STEPS"]
        training = one.training
        assert (training.micro_batch_sentences or 0) * training.micro_batches_per_step == 64
        assert (training.learning_rate, training.schedule, training.warmup_steps) == (0.005, "constant", 0)
        assert (training.optimizer, training.label_smoothing, training.average_checkpoints) == (
            "adam",
            0.0,
            1,
        )
        model = one.model
        assert (model.d_model, model.num_layers, model.num_heads, model.d_ff) == (32, 2, 4, 64)
        assert (model.norm, model.dropout, model.share_embeddings) == ("post", 0.1, False)
        assert [CHAPTER["words"](text) for text in one.evaluation.attention_sentences] == [
            CHAPTER["words"](text) for text in CHAPTER["FOUR"]
        ]
