"""From what an evaluation measured to what its report shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passerelle.config import EvaluationConfig
from passerelle.decoding.translate import Translation
from passerelle.evaluation.all_scores import AllScores
from passerelle.evaluation.attention_files import AttentionFindings
from passerelle.evaluation.held_out import HeldOut
from passerelle.evaluation.report.content import (
    ReportContent,
    ReportScore,
    ScaleMark,
    ShownTranslation,
    Table,
)
from passerelle.evaluation.report.selection import best_worst_random, corpus_tables, training_curves
from passerelle.evaluation.score_rows import ScoreRow
from passerelle.model_folder import LoadedModel

SCORES = {
    "bleu": "BLEU",
    "bleu_first_reference": "BLEU, first reference alone",
    "bleu_greedy": "BLEU, greedy search",
    "chrf": "chrF",
    "chrf_pp": "chrF++",
    "ter": "TER (lower is better)",
}
SCALE = {
    "copy": "the source, copied",
    "memory": "translation memory",
    "model": "this model",
    "model_for_human": "this model, where people wrote several",
    "human": "one of their versions",
}
"""Bars in the chart of the scale. The last two share their sentences and references."""
LEAKS = {
    "shared_source": "the same source sentence",
    "shared_target": "the same target sentence",
    "near_source": "a near source sentence",
    "near_target": "a near target sentence",
}


@dataclass(frozen=True)
class Measured:
    """All that an evaluation found."""

    test: HeldOut
    translations: Sequence[Translation]
    chrf_of_each: Sequence[float]
    scores: AllScores
    leaks: Mapping[str, float]
    attention: AttentionFindings
    lineage: Mapping[str, Any]


def report_content(
    measured: Measured, loaded: LoadedModel, corpus_counts: Path, curves: Path, config: EvaluationConfig
) -> ReportContent:
    """Everything on the page. Raises ValueError where the corpus's counts or the curves are missing."""
    scores, languages = measured.scores, loaded.languages
    size = sum(parameter.numel() for parameter in loaded.model.parameters())
    parameters = measured.lineage["parameters"]
    translations = [
        ShownTranslation(number, one.source, one.text, tuple(references), score, one.is_finished)
        for number, (one, references, score) in enumerate(
            zip(measured.translations, measured.test.references, measured.chrf_of_each, strict=True)
        )
    ]
    return ReportContent(
        title=str(parameters.get("corpus", {}).get("name", "Test set")),
        subtitle=f"{languages.source} → {languages.target}, {measured.lineage['model']['name']}, "
        f"{size:,} parameters, {len(translations):,} test sentences",
        scores=tuple(
            ReportScore(SCORES[name], score.value, score.low, score.high, score.signature)
            for name, score in scores.whole.items()
        ),
        scale=_scale(scores),
        score_tables=(
            _rows_table("By length of the source, and by words unseen in training", scores.parts),
            _rows_table("What gives the score a scale", scores.scale),
        ),
        curves=training_curves(curves / "training.csv", curves / "validation.csv"),
        corpus_tables=(*corpus_tables(corpus_counts), _leak_table(measured.leaks)),
        translations=best_worst_random(translations, config.report_sentences, config.seed),
        languages=(languages.source, languages.target),
        attention=measured.attention.shown,
        heads=measured.attention.heads,
        heads_note=measured.attention.heads_note,
        lineage=measured.lineage,
    )


def _scale(scores: AllScores) -> tuple[ScaleMark, ...]:
    found = {"model": scores.whole["bleu"], **{row.name: row.bleu for row in scores.scale}}
    return tuple(
        ScaleMark(name, found[key].value, found[key].low, found[key].high, is_model=key.startswith("model"))
        for key, name in SCALE.items()
        if key in found
    )


def _rows_table(title: str, rows: Sequence[ScoreRow]) -> Table:
    return Table(
        title,
        ("translations", "sentences", "BLEU", "95 % interval", "chrF++"),
        tuple(
            (
                row.meaning,
                row.num_sentences,
                row.bleu.value,
                f"{row.bleu.low:.1f} to {row.bleu.high:.1f}",
                row.chrf_pp.value,
            )
            for row in rows
        ),
    )


def _leak_table(leaks: Mapping[str, float]) -> Table:
    sides = {"test": "test", "valid": "validation", "random": "rows at random"}
    return Table(
        "What training shares with held-out sentences",
        ("share of sentences that have", *sides.values()),
        tuple(
            (name, *(f"{leaks[f'{side}_{kind}_share']:.1%}" for side in sides))
            for kind, name in LEAKS.items()
        ),
        f"Compared by letters and digits, case-folded; near: at least {leaks['near_percent']:.0f} % alike. The last "
        "column is what the same pairs would share, had their rows been dealt out at random.",
    )
