"""A trained model on the test sentences: translations, scores, attention and a report, as files."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from passerelle.config import DecodingConfig, EvaluationConfig
from passerelle.corpus.typography import typography_accuracy
from passerelle.decoding.processes import TranslateNBest, num_processes, translation_processes
from passerelle.decoding.translate import Translation
from passerelle.evaluation.all_scores import DIGITS, AllScores, all_scores
from passerelle.evaluation.attention_files import write_attention
from passerelle.evaluation.held_out import HeldOut, read_held_out
from passerelle.evaluation.leaks import leak_report, read_splits
from passerelle.evaluation.overlap import check_no_overlap
from passerelle.evaluation.report.measured import Measured, report_content
from passerelle.evaluation.report.page import write_report
from passerelle.evaluation.scores import sentence_chrf
from passerelle.files import whole_folder, write_json
from passerelle.identity import identity
from passerelle.lineage import lineage_card
from passerelle.model_folder import load_model


@dataclass(frozen=True)
class Inputs:
    """What a score is made from: outputs of earlier stages, and the code."""

    model: Path
    prepared: Path
    """Folder with train.parquet, valid.parquet and test.parquet."""
    shards: Path
    corpus_counts: Path
    """File that stage `prepare` writes."""
    training_facts: Path
    """File that stage `train` writes."""
    curves: Path
    """Folder with training.csv and validation.csv."""
    repository: Path


@dataclass(frozen=True)
class Evaluation:
    """What was measured."""

    fingerprint: str
    """Of the run that trained the model."""
    metrics: dict[str, float]
    """As in evaluation.json: scores, their intervals, and counts."""
    leaks: dict[str, float]
    """As in leaks.json."""
    scores: AllScores
    sentences_per_second: dict[str, float]
    """Of beam and of greedy search, here and now; in no file of metrics."""

    def summary(self) -> str:
        """The scores in three lines."""
        numbers = self.metrics
        scale = ", ".join(f"{row.name.replace('_', ' ')} {row.bleu.value:.1f}" for row in self.scores.scale)
        return (
            f"BLEU {numbers['bleu']:.1f} (95 %: {numbers['bleu_low']:.1f} to {numbers['bleu_high']:.1f}), "
            f"chrF++ {numbers['chrf_pp']:.1f}, TER {numbers['ter']:.1f}, {numbers['sentences']} sentences "
            f"against {numbers['references']} references\n"
            f"BLEU {numbers['bleu_first_reference']:.1f} against the first reference alone, "
            f"{numbers['bleu_greedy']:.1f} by greedy search; {numbers['unfinished']} translations were cut\n"
            f"for scale, BLEU of: {scale}"
        )


def evaluate(
    inputs: Inputs,
    folder: Path,
    metrics_folder: Path,
    decoding: DecodingConfig,
    evaluation: EvaluationConfig,
) -> Evaluation:
    """Translate the test sentences with the model and score them; write `folder` and two files of metrics.

    folder: report.html, translations.jsonl (source, references, hypothesis, score = sentence chrF, …), scores.json
    (all scores and signatures), lineage.json, and what `attention_files.write_attention` writes. metrics_folder:
    evaluation.json and leaks.json. Scores compare the text as it is printed. Raises ValueError where model or
    test set are missing or not usable, or the model was trained on a test sentence.
    """
    began, tags = time.perf_counter(), identity(inputs.repository)
    loaded = load_model(inputs.model, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    test = read_held_out(inputs.prepared / "test.parquet", loaded.languages.target)
    check_no_overlap(test, inputs.model)
    with whole_folder(folder) as temporary:
        number = num_processes(len(test.sources), decoding)
        with translation_processes([inputs.model], number, loaded) as translate:
            beam, beam_speed = _translate(translate, test.sources, decoding)
            greedy, greedy_speed = _translate(
                translate, test.sources, decoding.model_copy(update={"method": "beam", "beam_size": 1})
            )
        texts = [translation.text for translation in beam]
        chrf_of_each = sentence_chrf(texts, test.references)
        _write_translations(temporary / "translations.jsonl", test, beam, chrf_of_each)
        attention = write_attention(loaded, test, beam, chrf_of_each, evaluation, decoding, temporary)
        scores = all_scores(
            texts, [one.text for one in greedy], test, inputs.prepared / "train.parquet", evaluation
        )
        leaks = leak_report(read_splits(inputs.prepared))
        metrics = {
            **scores.numbers(),
            "typography": round(typography_accuracy(texts, loaded.languages.target), DIGITS),
            "sentences": len(beam),
            "references": sum(map(len, test.references)),
            "unfinished": sum(not translation.is_finished for translation in beam),
            "in_parts": sum(translation.num_parts > 1 for translation in beam),
            "source_cut": sum(translation.is_cut for translation in beam),
        }
        card = _lineage(inputs, tags, decoding, evaluation, metrics, scores, time.perf_counter() - began)
        measured = Measured(test, beam, chrf_of_each, scores, leaks, attention, card)
        content = report_content(measured, loaded, inputs.corpus_counts, inputs.curves, evaluation)
        write_report(temporary / "report.html", content)
        write_json(temporary / "lineage.json", card)
        signatures = {"signatures": scores.signatures()}
        write_json(temporary / "scores.json", {"whole": metrics, **scores.details(), **signatures})
    write_json(metrics_folder / "evaluation.json", metrics)
    write_json(metrics_folder / "leaks.json", leaks)
    speed = {"beam": beam_speed, "greedy": greedy_speed}
    return Evaluation(loaded.fingerprint, metrics, leaks, scores, speed)


def _translate(
    translate: TranslateNBest, sources: Sequence[str], decoding: DecodingConfig
) -> tuple[list[Translation], float]:
    """The translations, and how many were made in a second; a line on the terminal shows how far it is."""
    name = "greedy" if decoding.beam_size == 1 else f"beam {decoding.beam_size}"
    name = decoding.method if decoding.method != "beam" else name
    start = time.perf_counter()
    with tqdm(total=len(sources), desc=f"translating, {name}", unit=" sentences", disable=None) as bar:
        translations = [best for best, *_ in translate(sources, decoding, progress=bar.update)]
    return translations, len(sources) / (time.perf_counter() - start)


def _write_translations(
    path: Path, test: HeldOut, translations: Sequence[Translation], scores: Sequence[float]
) -> None:
    """One JSON object a line: what was asked, what came, what was expected."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        rows = zip(translations, test.references, test.groups, scores, strict=True)
        for translation, references, group, score in rows:
            row = {
                "source": translation.source,
                "references": references,
                "hypothesis": translation.text,
                "score": round(score, DIGITS),
                "log_prob": round(translation.log_prob, DIGITS),
                "is_finished": translation.is_finished,
                "group": group,
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _lineage(
    inputs: Inputs,
    tags: Mapping[str, str],
    decoding: DecodingConfig,
    evaluation: EvaluationConfig,
    metrics: Mapping[str, float],
    scores: AllScores,
    seconds: float,
) -> dict[str, Any]:
    facts = json.loads(inputs.training_facts.read_text(encoding="utf-8"))
    return lineage_card(
        root=inputs.repository,
        tags=tags,
        model_folder=inputs.model,
        shards=inputs.shards,
        test=inputs.prepared / "test.parquet",
        params={"decoding": decoding.model_dump(), "evaluation": evaluation.model_dump()},
        scores=metrics,
        signatures=scores.signatures(),
        seconds={"training": facts["train_seconds"], "evaluation": seconds},
    )
