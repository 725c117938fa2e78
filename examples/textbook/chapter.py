"""Stage `chapter`: what the chapter shows of its two models, and what it leaves unsaid.

Reads of transformer/ and bahdanau/ the model, the curve of training and the parameters (sections decoding and
evaluation of params.yaml, with the changes of theirs), and data/prepared/{train,test}.parquet. Translates the
chapter's four sentences, the training sentences and the test sentences, and scores them in the chapter's way and
by sacreBLEU.

Writes chapter.md, the report, and metrics/chapter.json (a DVC metric); both also go into the MLflow run of each
model:
  exact                       of the four sentences, those translated to the letter
  loss, loss_chapter_unit     of the last 10 training steps, an epoch; nats a token, and as the chapter has it
  {four,train,test}_chapter_bleu, …_bleu; of train and test also its 95 % interval, …_bleu_low, …_bleu_high
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from passerelle.config import EvaluateParams
from passerelle.corpus.typography import restore_typography
from passerelle.data.words import split_words
from passerelle.decoding.translate import Translation, translate
from passerelle.evaluation.chapter_bleu import chapter_bleu, sentence_bleu
from passerelle.evaluation.scores import Resampling, bleu
from passerelle.files import whole_file, write_json
from passerelle.model_folder import load_model
from passerelle.params_file import load_params
from passerelle.parquet import read_parquet
from passerelle.run_folder import runs_folder
from passerelle.stages import run_stage
from passerelle.tracking import open_run

FOUR = {
    "go.": ["va !"],
    "i lost.": ["j'ai perdu."],
    "he's calm.": ["il est calme."],
    "i'm home.": ["je suis chez moi."],
}
"""The chapter's sentences and labels, as cleaned text in lower case."""
CHAPTER = {"transformer": (4, 0.030), "bahdanau": (3, 0.025)}
"""A model's folder: how many of the four the chapter's own got right, and its training loss in the chapter's unit."""
NUM_STEPS = 10
"""To which the chapter pads or cuts every sentence."""
REPORT, METRICS = Path("chapter.md"), Path("metrics/chapter.json")
DIGITS = 4
"""After the point, in the metrics file."""

References = Mapping[str, Sequence[str]]
"""Source sentence -> its translations, cleaned."""


@dataclass(frozen=True)
class Result:
    """What one model gave."""

    fingerprint: str
    language: str
    """Of its translations."""
    translations: list[Translation]
    """Of the four sentences."""
    metrics: dict[str, float]
    """As in the metrics file."""


def main() -> None:
    train, test = read_sides(Path("data/prepared/train.parquet"), Path("data/prepared/test.parquet"))
    results = {name: measure(Path(name), {"four": FOUR, "train": train, "test": test}) for name in CHAPTER}
    report = "\n\n".join(
        [translations_table(results, train), numbers_table(results), explanation(train, test)]
    )
    write_json(METRICS, {name: result.metrics for name, result in results.items()})
    with whole_file(REPORT) as temporary:
        temporary.write_text(
            f"# The chapter's experiment, as it came out here\n\n{report}\n", encoding="utf-8"
        )
    for result in results.values():
        with open_run(result.fingerprint, runs_folder() / result.fingerprint) as log:
            log.log_metrics({f"chapter.{name}": value for name, value in result.metrics.items()})
            log.log_files(REPORT, "chapter")
    print(report)


def read_sides(train: Path, test: Path) -> tuple[References, References]:
    """The different sources of the training pairs, and of the test, with all their translations."""
    references: dict[str, list[str]] = {}
    for row in read_parquet(train, ["source", "target"]).to_pylist():
        references.setdefault(row["source"], []).append(row["target"])
    rows = read_parquet(test, ["source", "references"]).to_pylist()
    return references, {row["source"]: row["references"] for row in rows}


def measure(folder: Path, sides: Mapping[str, References]) -> Result:
    """Translations and scores of the model in `folder` on each side, `four` among them."""
    params = load_params(EvaluateParams, folder / "params.yaml")
    loaded = load_model(folder / "model")
    with (folder / "plots/training.csv").open(encoding="utf-8", newline="") as file:
        loss = float(list(csv.DictReader(file))[-1]["loss"])
    translations = {name: translate(loaded, list(side), params.decoding) for name, side in sides.items()}
    metrics: dict[str, float] = {
        "exact": sum(words(t.raw) == words(FOUR[t.source][0]) for t in translations["four"]),
        "loss": round(loss, DIGITS),
        "loss_chapter_unit": round(loss / NUM_STEPS, DIGITS),
    }
    for name, side in sides.items():
        groups = [str(number) for number in range(len(side))]
        resampling = Resampling(groups, params.evaluation.bootstrap_samples, params.evaluation.seed)
        printed = [
            [restore_typography(text, loaded.languages.target) for text in texts] for texts in side.values()
        ]
        score = bleu([translation.text for translation in translations[name]], printed, resampling)
        metrics[f"{name}_chapter_bleu"] = round(
            mean(map(best_chapter_bleu, translations[name], side.values())), DIGITS
        )
        metrics[f"{name}_bleu"] = round(score.value, DIGITS)
        if name != "four":  # too few to draw from
            metrics[f"{name}_bleu_low"] = round(score.low, DIGITS)
            metrics[f"{name}_bleu_high"] = round(score.high, DIGITS)
    return Result(loaded.fingerprint, loaded.languages.target, translations["four"], metrics)


def words(text: str) -> str:
    """The chapter's form of a text: words and marks between spaces."""
    return " ".join(split_words(text))


def best_chapter_bleu(translation: Translation, labels: Sequence[str]) -> float:
    """Against the label that it is most like; the chapter has one for each sentence."""
    return max(chapter_bleu(words(translation.raw), words(label)) for label in labels)


def translations_table(results: Mapping[str, Result], train: References) -> str:
    """A row for each of the four sentences and each model."""
    lines = [
        "| sentence | is in training | model | translation | chapter's BLEU, k = 2 | sacreBLEU |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for number, (source, labels) in enumerate(FOUR.items()):
        for name, result in results.items():
            translation = result.translations[number]
            row = (
                f"`{words(source)}` → `{words(labels[0])}`",
                "yes" if source in train else "no",
                name,
                f"`{words(translation.raw)}`",
                f"{best_chapter_bleu(translation, labels):.3f}",
                f"{sentence_bleu(translation.text, [restore_typography(labels[0], result.language)]):.1f}",
            )
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def numbers_table(results: Mapping[str, Result]) -> str:
    """A row for each number, a column for each model, the chapter's own figure beside."""
    header = "".join(f" {name} | the chapter's |" for name in results)
    lines = [f"| |{header}", f"| --- |{' --- | --- |' * len(results)}"]
    rows = {
        "of the four, to the letter": ("exact", ".0f", 0),
        "training loss, the chapter's unit": ("loss_chapter_unit", ".3f", 1),
        "training loss, nats a token": ("loss", ".3f", None),
        "chapter's BLEU, mean of the four": ("four_chapter_bleu", ".3f", None),
        "chapter's BLEU, mean of the training sentences": ("train_chapter_bleu", ".3f", None),
        "chapter's BLEU, mean of the held-out sentences": ("test_chapter_bleu", ".3f", None),
        "sacreBLEU of the four together": ("four_bleu", ".1f", None),
        "sacreBLEU of the training sentences": ("train_bleu", ".1f", None),
        "sacreBLEU of the held-out sentences": ("test_bleu", ".1f", None),
    }
    for title, (key, form, place) in rows.items():
        cells = [
            f" {result.metrics[key]:{form}} | {'' if place is None else format(CHAPTER[name][place], form)} |"
            for name, result in results.items()
        ]
        lines.append(f"| {title} |{''.join(cells)}")
    return "\n".join(lines)


def explanation(train: References, test: References) -> str:
    """How to read the numbers."""
    known = [f"`{words(source)}`" for source in FOUR if source in train]
    return f"""\
Two BLEUs. The chapter's is of one sentence: shares of its words and pairs of words (k = 2) that one label has,
between spaces and unsmoothed, weighted 1/2 and 1/4, so a right word counts for much. sacreBLEU is of a corpus: it
has its own tokens, adds up 1- to 4-grams over all sentences before it divides, and takes all known translations for
references; of one sentence it is smoothed and stands for little.

Two losses. The chapter takes the mean over {NUM_STEPS} steps of a sentence, padding counting as zero, adds these up
and divides by the number of tokens: a tenth of the loss in nats a token, dropout on, over the last epoch.

Known and new. Among the lines that the models learn are {len(known)} of the four sentences ({", ".join(known)}), so the
chapter's score tells what was learnt by heart. The held-out score is of {len(test)} sentences that share none with the
training set. A translation is compared with all those that its set has of the sentence."""


if __name__ == "__main__":
    run_stage(main)
