"""What of a run is shown: best, worst and random translations, curves of training, counts of the corpus."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from passerelle.evaluation.report.content import Curve, ShownTranslation, Table

LOSS, BLEU, RATE = "Loss", "BLEU of validation sentences", "Learning rate"


def best_worst_random(
    translations: Sequence[ShownTranslation], number: int, seed: int
) -> dict[str, list[ShownTranslation]]:
    """At most `number` translations for each list; equal scores stand in the order of the test set.

    The random ones depend on the seed and on how many there are, so another model is shown on the same sentences.
    """
    best = sorted(translations, key=lambda row: (-row.score, row.number))
    worst = sorted(translations, key=lambda row: (row.score, row.number))
    drawn = np.random.default_rng(seed).permutation(len(translations))[:number]
    return {
        "Worst": worst[:number],
        "Best": best[:number],
        "Random": [translations[index] for index in sorted(drawn.tolist())],
    }


def training_curves(training_csv: Path, validation_csv: Path) -> tuple[Curve, ...]:
    """Loss, BLEU where it was measured, and learning rate, from the files that stage `train` writes.

    Raises ValueError where one is missing or has no steps.
    """
    training, validation = _columns(training_csv), _columns(validation_csv)
    loss = {"training": training["loss"], "validation": validation["valid_loss"]}
    curves = [Curve(LOSS, "nats a token", loss)]
    if validation.get("valid_bleu"):
        curves.append(Curve(BLEU, "BLEU, greedy search", {"validation": validation["valid_bleu"]}))
    curves.append(Curve(RATE, "learning rate", {"training": training["learning_rate"]}))
    return tuple(curves)


def corpus_tables(corpus_json: Path) -> tuple[Table, ...]:
    """Counts of the corpus and its splits, and rejected pairs by reason, from what stage `prepare` writes.

    Raises ValueError where the file is missing.
    """
    if not corpus_json.is_file():
        raise ValueError(f"{corpus_json}: no such file; run stage prepare first")
    counts = json.loads(corpus_json.read_text(encoding="utf-8"))
    splits = [
        (split, *(counts[split][name] for name in ("rows", "sentences", "references")))
        for split in ("train", "valid", "test")
    ]
    rejected = dict(counts["rejected"])
    total = rejected.pop("total")
    reasons = sorted(
        ((reason, number) for reason, number in rejected.items() if number), key=lambda row: -row[1]
    )
    note = (
        f"{counts['read']:,} lines were read and {counts['kept']:,} kept. Pairs that share a sentence are one group: "
        f"{counts['groups']:,} groups, the largest of {counts['largest_group']:,}."
    )
    unused = ", ".join(reason for reason, number in rejected.items() if not number)
    return (
        Table("Splits", ("split", "rows", "sentences", "references"), tuple(splits), note),
        Table(
            f"{total:,} rejected",
            ("reason", "pairs"),
            tuple(reasons),
            f"Looked for, and not found: {unused}." if unused else "",
        ),
    )


def _columns(path: Path) -> dict[str, list[tuple[float, float]]]:
    """Name -> (step, value) of each row that has a value."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file; run stage train first")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or "step" not in rows[0]:
        raise ValueError(f"{path}: expected a column step and rows; run stage train again")
    return {
        name: [(float(row["step"]), float(row[name])) for row in rows if row[name]]
        for name in rows[0]
        if name != "step"
    }
