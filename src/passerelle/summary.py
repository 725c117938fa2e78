"""What a run of the pipeline gave, on one screen: `python -m passerelle.summary examples/phrasebook`.

Reads what the stages wrote into the folder's metrics/ and evaluation/.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from passerelle.stages import printable

NUM_SAMPLES = 5


def summary(folder: Path) -> str:
    """Corpus, training, scores, sample translations, and where the pictures and the recorded runs are.

    Raises ValueError where a file is missing, or not what its stage writes.
    """
    translations = _read_translations(folder / "evaluation/translations.jsonl")
    pictures = sorted((folder / "evaluation").rglob("*.png"))
    return "\n".join(
        [
            *_corpus_lines(folder / "metrics/corpus.json"),
            *_training_lines(folder / "metrics/training.json"),
            *_score_lines(folder / "metrics/evaluation.json"),
            *_translation_lines(translations),
            *(f"Attention     {len(pictures)} pictures in {path.parent}/" for path in pictures[:1]),
            *(f"Report        {path}" for path in [folder / "evaluation/report.html"] if path.is_file()),
            f"All runs      {_runs_line()}",
        ]
    )


def main() -> None:
    """Print the summary of the folder named on the command line."""
    arguments = sys.argv[1:]
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        sys.exit("usage: python -m passerelle.summary FOLDER, the one that holds params.yaml and dvc.yaml")
    try:
        print(printable(summary(Path(arguments[0]))))
    except ValueError as error:
        sys.exit(f"error: {printable(str(error))}")


def _corpus_lines(path: Path) -> list[str]:
    counts = _read_metrics(
        path, ["read", "rejected.total", "train.rows", "valid.sentences", "test.sentences"]
    )
    return [
        f"Corpus        {counts['read']:,} lines read, {counts['rejected.total']:,} rejected; "
        f"{counts['train.rows']:,} pairs to train on,",
        f"              {counts['valid.sentences']:,} sentences to validate and "
        f"{counts['test.sentences']:,} to test",
    ]


def _training_lines(path: Path) -> list[str]:
    facts = _read_metrics(path, ["steps", "train_seconds", "tokens_per_second", "parameters"])
    minutes, seconds = divmod(round(facts["train_seconds"]), 60)
    return [
        f"Training      {facts['steps']:,} steps in {minutes} min {seconds:02} s, "
        f"{facts['tokens_per_second']:,.0f} tokens/s, {facts['parameters']:,} parameters"
    ]


def _score_lines(path: Path) -> list[str]:
    names = {"bleu": "BLEU          ", "chrf": "chrF          "}
    keys = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    scores = _read_metrics(path, [*keys, "sentences", "references"])
    lines = [
        f"{title}{scores[name]:.1f}, 95 % interval {scores[f'{name}_low']:.1f} to {scores[f'{name}_high']:.1f}"
        for name, title in names.items()
    ]
    return [
        f"{lines[0]}, on {scores['sentences']:,} test sentences with {scores['references']:,} references",
        *lines[1:],
    ]


def _translation_lines(translations: list[dict[str, str]]) -> list[str]:
    """Samples from the whole file, at equal distances."""
    count = min(NUM_SAMPLES, len(translations))
    chosen = [translations[len(translations) * number // count] for number in range(count)]
    width = max(len(row["source"]) for row in chosen)
    return ["Translations", *(f"  {row['source']:<{width}}  →  {row['hypothesis']}" for row in chosen)]


def _runs_line() -> str:
    if address := os.environ.get("MLFLOW_TRACKING_URI"):
        scheme, separator, rest = address.rpartition("://")
        return f"recorded by MLflow at {scheme}{separator}{rest.rpartition('@')[2]}"  # without a password
    return "`make ui`, then http://localhost:5000"


def _read_metrics(path: Path, keys: list[str]) -> dict[str, Any]:
    """The numbers at the dotted keys."""
    try:
        content = json.loads(_read_text(path))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: not JSON ({error}); run `dvc repro` again") from None
    found = {}
    for key in keys:
        value = content
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{path}: expected a number at {key}, found {value!r}; run `dvc repro` again")
        found[key] = value
    return found


def _read_translations(path: Path) -> list[dict[str, str]]:
    rows = []
    for number, line in enumerate(_read_text(path).splitlines(), start=1):
        try:
            row = json.loads(line)
            rows.append({name: str(row[name]) for name in ("source", "hypothesis")})
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}:{number}: not a translation ({error!r}); run `dvc repro` again"
            ) from None
    if not rows:
        raise ValueError(f"{path}: no translations; run `dvc repro` again")
    return rows


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"{path}: no such file; run `dvc repro` for this folder first") from None


if __name__ == "__main__":
    main()
