"""The whole evaluation of a small model: what the files hold, and what is refused."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file

from passerelle.config import DecodingConfig, EvaluationConfig, LanguagesConfig, ModelConfig
from passerelle.corpus.sentence_hashes import sentence_hashes
from passerelle.decoding.translate import Translation
from passerelle.evaluation import evaluate as module
from passerelle.evaluation.attention_maps import file_name
from passerelle.evaluation.evaluate import Evaluation, Inputs, evaluate
from passerelle.evaluation.scores import (
    Resampling,
    bleu,
    chrf,
    chrf_pp,
    first_references,
    sentence_chrf,
    ter,
)
from passerelle.model_folder import save_model
from small_model import SOURCES, TARGETS, write_small_model
from source_imports import ROOT

DECODING = DecodingConfig(beam_size=2, max_length=8)
EVALUATION = EvaluationConfig(bootstrap_samples=100, attention_sentences=["We see a boat!", "Ça va ?"])
TEST_SOURCES = SOURCES[:9]
TRAINED_ON = {"source": ["I see a boat.", "He hid."], "target": ["Je vois un bateau.", "Il se cacha."]}
REFERENCES = [TARGETS[index : index + 1 + index % 3] for index in range(9)]
PRINTED = [[text.replace(" !", "\u202f!").replace(" ?", "\u202f?") for text in texts] for texts in REFERENCES]
GROUPS = ["a", "b", "a", "c", "d", "e", "f", "g", "h"]
COUNTS = {
    "read": 50,
    "kept": 48,
    "groups": 40,
    "largest_group": 3,
    "rejected": {"total": 2, "duplicate": 2, "empty": 0},
    **{split: {"rows": 9, "sentences": 9, "references": 18} for split in ("train", "valid", "test")},
}


def write_held_out(path: Path, **columns: Any) -> None:
    table = {"source": TEST_SOURCES, "references": REFERENCES, "group": GROUPS, **columns}
    pq.write_table(pa.table({name: column for name, column in table.items() if column is not None}), path)


def write_inputs(model: Path, folder: Path, **columns: Any) -> Inputs:
    """What the stages before leave; columns are those of the test set that are to be others."""
    (folder / "prepared").mkdir(parents=True)
    pq.write_table(pa.table(TRAINED_ON), folder / "prepared" / "train.parquet")
    write_held_out(folder / "prepared" / "valid.parquet")
    write_held_out(folder / "prepared" / "test.parquet", **columns)
    (folder / "corpus.json").write_text(json.dumps(COUNTS), encoding="utf-8")
    (folder / "plots").mkdir()
    (folder / "plots" / "training.csv").write_text("step,loss,learning_rate\n10,3.5,0.1\n20,2.5,0.2\n")
    (folder / "plots" / "validation.csv").write_text("step,valid_loss,valid_bleu\n20,2.75,12.5\n")
    (folder / "training.json").write_text(json.dumps({"train_seconds": 12.5}), encoding="utf-8")
    return Inputs(
        model=model,
        prepared=folder / "prepared",
        shards=folder / "shards",
        corpus_counts=folder / "corpus.json",
        training_facts=folder / "training.json",
        curves=folder / "plots",
        repository=ROOT,
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, trained on none of the test sentences."""
    folder = write_small_model(tmp_path_factory.mktemp("small"))
    hashes = {side: np.unique(sentence_hashes(texts)) for side, texts in TRAINED_ON.items()}
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    weights = load_file(folder / "weights.safetensors")
    save_model(
        folder,
        weights,
        folder.parent / "tokenizer" / "tokenizer.model",
        model=ModelConfig.model_validate(config["model"]),
        languages=LanguagesConfig(),
        fingerprint=config["fingerprint"],
        training_sentences=hashes,
    )
    return folder


def run(inputs: Inputs, folder: Path, config: EvaluationConfig = EVALUATION) -> Evaluation:
    return evaluate(inputs, folder / "evaluation", folder / "metrics", DECODING, config)


@pytest.fixture(scope="module")
def folder(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    run(write_inputs(model, folder / "inputs"), folder)
    return folder


def translations(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "evaluation" / "translations.jsonl").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    return [json.loads(line) for line in lines]


def test_the_metrics_are_the_scores_of_the_translations_file(folder: Path) -> None:
    rows = translations(folder)
    hypotheses = [row["hypothesis"] for row in rows]
    resampling = Resampling(GROUPS, 100, EVALUATION.seed)
    metrics = json.loads((folder / "metrics" / "evaluation.json").read_text(encoding="utf-8"))
    for name, score in (
        ("bleu", bleu(hypotheses, PRINTED, resampling)),
        ("bleu_first_reference", bleu(hypotheses, first_references(PRINTED), resampling)),
        ("chrf", chrf(hypotheses, PRINTED, resampling)),
        ("chrf_pp", chrf_pp(hypotheses, PRINTED, resampling)),
        ("ter", ter(hypotheses, PRINTED, resampling)),
    ):
        numbers = [metrics[name], metrics[f"{name}_low"], metrics[f"{name}_high"]]
        assert numbers == pytest.approx([score.value, score.low, score.high], abs=1e-4)
    assert (metrics["sentences"], metrics["references"]) == (9, 18)
    assert metrics["unfinished"] == sum(not row["is_finished"] for row in rows)
    assert 0.0 <= metrics["bleu_greedy"] <= 100.0


def test_a_perfect_model_scores_100_against_all_references_only(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = dict(zip(TEST_SOURCES, [texts[-1] for texts in PRINTED], strict=True))

    @contextmanager
    def perfect(*_: object) -> Iterator[Any]:
        def translate(sentences: list[str], config: DecodingConfig, **_: object) -> list[list[Translation]]:
            texts = [answers[sentence] if config.beam_size > 1 else "non" for sentence in sentences]
            pairs = zip(sentences, texts, strict=True)
            return [[Translation(source, text, text, (3,), -1.0, -1.0, True)] for source, text in pairs]

        yield translate

    monkeypatch.setattr(module, "translation_processes", perfect)
    config = EVALUATION.model_copy(update={"attention_sentences": []})
    result = run(write_inputs(model, tmp_path / "inputs"), tmp_path, config)
    assert result.metrics["bleu"] == result.metrics["chrf"] == 100.0
    assert result.metrics["bleu_first_reference"] < 90.0
    assert result.metrics["bleu_greedy"] == 0.0
    assert (result.metrics["typography"], result.metrics["unfinished"]) == (1.0, 0)
    assert result.summary().startswith(
        "BLEU 100.0 (95 %: 100.0 to 100.0), chrF++ 100.0, TER 0.0, 9 sentences against 18"
    )


def test_every_test_sentence_has_its_row(folder: Path) -> None:
    rows = translations(folder)
    assert [row["source"] for row in rows] == TEST_SOURCES
    assert [row["references"] for row in rows] == PRINTED
    assert [row["group"] for row in rows] == GROUPS
    scores = sentence_chrf([row["hypothesis"] for row in rows], PRINTED)
    assert [row["score"] for row in rows] == pytest.approx(scores, abs=1e-4)


def test_every_score_stands_with_its_signature(folder: Path) -> None:
    scores = json.loads((folder / "evaluation" / "scores.json").read_text(encoding="utf-8"))
    signatures = scores["signatures"]
    names = {"bleu", "bleu_first_reference", "bleu_greedy", "chrf", "chrf_pp", "ter"}
    assert set(signatures) == {*names, "interval"}
    assert names <= set(scores["whole"])
    assert {"copy", "memory", "human", "model_for_human"} <= set(scores["scale"])
    assert sum(row["sentences"] for name, row in scores["parts"].items() if name.startswith("words_")) == 9
    assert signatures["bleu"].startswith("nrefs:var|")
    assert signatures["bleu_first_reference"].startswith("nrefs:1|")
    assert signatures["interval"] == "interval:95%|bootstrap:100|over:8 groups|seed:12345"


def test_chosen_sentences_have_tensors_tokens_and_pictures(folder: Path) -> None:
    evaluation, stems = folder / "evaluation", ("01-we-see-a-boat", "02-ca-va")
    pictures = {path.name for path in (evaluation / "attention").iterdir()}
    tensors = {path.name for path in (evaluation / "attention_weights").iterdir()}
    kinds = ("encoder", "decoder_self", "cross")
    assert pictures == {"heads.png", *(f"{stem}.{kind}.png" for stem in stems for kind in kinds)}
    assert tensors == {f"{stem}.{end}" for stem in stems for end in ("safetensors", "json")}


def test_evaluating_again_gives_the_same_bytes_but_for_the_lineage(
    model: Path, folder: Path, tmp_path: Path
) -> None:
    result = run(write_inputs(model, tmp_path / "inputs"), tmp_path)
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    dated = {Path("evaluation/lineage.json"), Path("evaluation/report.html")}
    assert dated < files
    for path in sorted(files - dated):
        assert (tmp_path / path).read_bytes() == (folder / path).read_bytes(), path
    assert result.fingerprint == "0123456789abcdef"
    assert result.metrics == json.loads((tmp_path / "metrics/evaluation.json").read_text(encoding="utf-8"))
    assert result.leaks == json.loads((tmp_path / "metrics/leaks.json").read_text(encoding="utf-8"))


def test_the_report_shows_what_was_measured(folder: Path) -> None:
    page = (folder / "evaluation" / "report.html").read_text(encoding="utf-8")
    metrics = json.loads((folder / "metrics" / "evaluation.json").read_text(encoding="utf-8"))
    assert f"<strong>{metrics['bleu']:.1f}</strong>" in page
    assert len(page.encode()) < 5_000_000


def test_a_sentence_without_text_stops_before_anything_is_written(model: Path, tmp_path: Path) -> None:
    config = EvaluationConfig(attention_sentences=["We see a boat.", " "])
    inputs = write_inputs(model, tmp_path / "inputs")
    with pytest.raises(ValueError, match=r"' ': no text, so nothing to attend to"):
        run(inputs, tmp_path, config)
    assert [path.name for path in tmp_path.iterdir()] == ["inputs"]


def test_a_model_that_was_trained_on_the_test_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    inputs = write_inputs(write_small_model(tmp_path / "small"), tmp_path / "inputs")
    with pytest.raises(ValueError, match=r"trained on the source or a reference of 9 of the 9 sentences"):
        run(inputs, tmp_path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"group": None},
            r"test.parquet: lacks \['group'\], has source, references; run stage prepare again",
        ),
        ({"source": [], "references": [], "group": []}, r"no test sentences; raise split.test_sentences"),
        ({"references": [[], *REFERENCES[1:]]}, r"references of sentence 0: expected a list of at least one"),
    ],
)
def test_an_unusable_test_set_is_refused(
    columns: dict[str, Any], message: str, model: Path, tmp_path: Path
) -> None:
    inputs = write_inputs(model, tmp_path / "inputs", **columns)
    with pytest.raises(ValueError, match=message):
        run(inputs, tmp_path)


def test_a_missing_or_damaged_test_set_is_refused(model: Path, tmp_path: Path) -> None:
    inputs = write_inputs(model, tmp_path / "inputs")
    (inputs.prepared / "test.parquet").write_text("no")
    with pytest.raises(ValueError, match=r"test.parquet: not a Parquet file .*; run stage prepare again"):
        run(inputs, tmp_path)
    (inputs.prepared / "test.parquet").unlink()
    with pytest.raises(ValueError, match=r"test.parquet: no such file; run stage prepare first"):
        run(inputs, tmp_path)


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("I'm home.", "04-i-m-home"),
        ("Où ça ?", "04-ou-ca"),
        ("🦊", "04-sentence"),
        ("a" * 90, "04-" + "a" * 40),
    ],
)
def test_file_names_are_plain(sentence: str, name: str) -> None:
    assert file_name(4, sentence) == name
