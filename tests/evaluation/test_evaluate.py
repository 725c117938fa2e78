"""The whole evaluation of a small model: what the files hold, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from passerelle.config import DecodingConfig, EvaluationConfig
from passerelle.decoding.translate import Translation
from passerelle.evaluation import evaluate as module
from passerelle.evaluation.attention_maps import alignment, attention_map, file_name
from passerelle.evaluation.evaluate import Evaluation, evaluate
from passerelle.evaluation.scores import Resampling, bleu, chrf, first_references, sentence_chrf
from passerelle.model_folder import load_model
from small_model import SOURCES, TARGETS, write_small_model

DECODING = DecodingConfig(beam_size=2, max_length=8)
EVALUATION = EvaluationConfig(bootstrap_samples=100, attention_sentences=["We see a boat!", "Ça va ?"])
TEST_SOURCES = SOURCES[:9]
REFERENCES = [TARGETS[index : index + 1 + index % 3] for index in range(9)]
PRINTED = [[text.replace(" !", "\u202f!").replace(" ?", "\u202f?") for text in texts] for texts in REFERENCES]
GROUPS = ["a", "b", "a", "c", "d", "e", "f", "g", "h"]


def write_test(path: Path, **columns: Any) -> Path:
    table = {"source": TEST_SOURCES, "references": REFERENCES, "group": GROUPS, **columns}
    pq.write_table(pa.table({name: column for name, column in table.items() if column is not None}), path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("small"))


def run(
    model: Path, folder: Path, test: Path | None = None, decoding: DecodingConfig = DECODING
) -> Evaluation:
    test = test or write_test(folder / "test.parquet")
    return evaluate(model, test, folder / "evaluation", folder / "metrics.json", decoding, EVALUATION)


@pytest.fixture(scope="module")
def folder(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    run(model, folder)
    return folder


def translations(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "evaluation" / "translations.jsonl").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    return [json.loads(line) for line in lines]


def test_the_metrics_are_the_scores_of_the_translations_file(folder: Path) -> None:
    rows = translations(folder)
    hypotheses = [row["hypothesis"] for row in rows]
    resampling = Resampling(GROUPS, 100, EVALUATION.seed)
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    for name, score in (
        ("bleu", bleu(hypotheses, PRINTED, resampling)),
        ("bleu_first_reference", bleu(hypotheses, first_references(PRINTED), resampling)),
        ("chrf", chrf(hypotheses, PRINTED, resampling)),
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

    def perfect(_: object, sentences: list[str], config: DecodingConfig, *__: object) -> list[Translation]:
        texts = [answers[sentence] if config.beam_size > 1 else "non" for sentence in sentences]
        return [Translation(s, t, t, (3,), -1.0, -1.0, True) for s, t in zip(sentences, texts, strict=True)]

    monkeypatch.setattr(module, "translate", perfect)
    config = EVALUATION.model_copy(update={"attention_sentences": []})
    test = write_test(tmp_path / "test.parquet")
    result = evaluate(model, test, tmp_path / "evaluation", tmp_path / "metrics.json", DECODING, config)
    assert result.metrics["bleu"] == result.metrics["chrf"] == 100.0
    assert result.metrics["bleu_first_reference"] < 90.0
    assert result.metrics["bleu_greedy"] == 0.0
    assert (result.metrics["typography"], result.metrics["unfinished"]) == (1.0, 0)
    assert result.summary().startswith(
        "BLEU 100.0 (95 %: 100.0 to 100.0), chrF 100.0, 9 sentences against 18"
    )


def test_every_test_sentence_has_its_row(folder: Path) -> None:
    rows = translations(folder)
    assert [row["source"] for row in rows] == TEST_SOURCES
    assert [row["references"] for row in rows] == PRINTED
    assert [row["group"] for row in rows] == GROUPS
    scores = sentence_chrf([row["hypothesis"] for row in rows], PRINTED)
    assert [row["score"] for row in rows] == pytest.approx(scores, abs=1e-4)


def test_signatures_stand_beside_the_translations(folder: Path) -> None:
    signatures = json.loads((folder / "evaluation" / "signatures.json").read_text(encoding="utf-8"))
    assert set(signatures) == {"bleu", "bleu_first_reference", "bleu_greedy", "chrf", "interval"}
    assert signatures["bleu"].startswith("nrefs:var|")
    assert signatures["bleu_first_reference"].startswith("nrefs:1|")
    assert signatures["interval"] == "interval:95%|bootstrap:100|over:8 groups|seed:12345"


def test_chosen_sentences_have_tensors_tokens_and_pictures(folder: Path) -> None:
    evaluation, stems = folder / "evaluation", ("01-we-see-a-boat", "02-ca-va")
    pictures = {path.name for path in (evaluation / "attention").iterdir()}
    tensors = {path.name for path in (evaluation / "attention_weights").iterdir()}
    kinds = ("encoder", "decoder_self", "cross")
    assert pictures == {f"{stem}.{kind}.png" for stem in stems for kind in kinds}
    assert tensors == {f"{stem}.{end}" for stem in stems for end in ("safetensors", "json")}


def test_evaluating_again_gives_the_same_bytes(model: Path, folder: Path, tmp_path: Path) -> None:
    result = run(model, tmp_path)
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.suffix != ".parquet")
    for path in files:
        if (folder / path).is_file():
            assert (tmp_path / path).read_bytes() == (folder / path).read_bytes(), path
    assert result.fingerprint == "0123456789abcdef"
    assert result.metrics == json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))


def test_a_sentence_without_text_stops_before_anything_is_written(model: Path, tmp_path: Path) -> None:
    config = EvaluationConfig(attention_sentences=["We see a boat.", " "])
    test = write_test(tmp_path / "test.parquet")
    with pytest.raises(ValueError, match=r"' ': no text, so nothing to attend to"):
        evaluate(model, test, tmp_path / "evaluation", tmp_path / "metrics.json", DECODING, config)
    assert [path.name for path in tmp_path.iterdir()] == ["test.parquet"]


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
    test = write_test(tmp_path / "test.parquet", **columns)
    with pytest.raises(ValueError, match=message):
        run(model, tmp_path, test)


def test_a_missing_or_damaged_test_set_is_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"absent.parquet: no such file; run stage prepare first"):
        run(model, tmp_path, tmp_path / "absent.parquet")
    (tmp_path / "text.parquet").write_text("no")
    with pytest.raises(ValueError, match=r"text.parquet: not a Parquet file .*; run stage prepare again"):
        run(model, tmp_path, tmp_path / "text.parquet")


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


def test_alignment_is_the_largest_mean_weight(model: Path) -> None:
    loaded = load_model(model)
    translation = Translation(
        "We see", "Nous", "Nous", (*loaded.tokenizer.encode("Nous"), 3), -1.0, -1.0, True
    )
    attention = attention_map(loaded, translation)
    weights = attention.weights["cross"].copy()
    weights[:] = 0.0
    weights[..., 0, 1], weights[..., 1:, 2] = 0.75, 0.5
    rows = alignment(replace(attention, weights={"cross": weights}))
    assert rows[0] == (attention.predicted_tokens[0], attention.source_tokens[1], 0.75)
    assert {row[1:] for row in rows[1:]} == {(attention.source_tokens[2], 0.5)}
