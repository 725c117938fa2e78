"""A trained model on the test sentences: translations, scores, attention of chosen sentences, as files."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm import tqdm

from passerelle.config import DecodingConfig, EvaluationConfig
from passerelle.corpus.typography import typography_accuracy
from passerelle.decoding.translate import Translation, translate
from passerelle.evaluation.attention_maps import attention_map, file_name, write_attention_map
from passerelle.evaluation.held_out import HeldOut, read_held_out
from passerelle.evaluation.plots import write_pictures
from passerelle.evaluation.scores import (
    Resampling,
    Score,
    bleu,
    chrf,
    first_references,
    sentence_chrf,
)
from passerelle.files import whole_folder, write_json
from passerelle.model_folder import LoadedModel, load_model

DIGITS = 4
"""After the point, in the metrics file."""


@dataclass(frozen=True)
class Evaluation:
    """What was measured."""

    fingerprint: str
    """Of the run that trained the model."""
    metrics: dict[str, float]
    """As in the metrics file: scores from 0 to 100, their intervals, and counts."""
    signatures: dict[str, str]
    """How each score was computed."""
    sentences_per_second: dict[str, float]
    """Of beam and of greedy search, here and now; not in the metrics file."""

    def summary(self) -> str:
        """The scores in two lines."""
        numbers = self.metrics
        return (
            f"BLEU {numbers['bleu']:.1f} (95 %: {numbers['bleu_low']:.1f} to {numbers['bleu_high']:.1f}), "
            f"chrF {numbers['chrf']:.1f}, {numbers['sentences']} sentences against "
            f"{numbers['references']} references\n"
            f"BLEU {numbers['bleu_first_reference']:.1f} against the first reference alone, "
            f"{numbers['bleu_greedy']:.1f} by greedy search; {numbers['unfinished']} translations were cut"
        )


def evaluate(
    model_folder: Path,
    test_parquet: Path,
    folder: Path,
    metrics_path: Path,
    decoding: DecodingConfig,
    evaluation: EvaluationConfig,
) -> Evaluation:
    """Translate the test sentences with the model, score them, draw attention; write `folder` and metrics.

    folder: translations.jsonl (source, references, hypothesis, score = sentence chrF, …), signatures.json, and
    of `evaluation.attention_sentences` the pictures in attention/, tensors and tokens in attention_weights/.
    Scores compare the text as it is printed. Raises ValueError where model or test set are missing or not usable.
    """
    loaded = load_model(model_folder, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    test = read_held_out(test_parquet, loaded.languages.target)
    with whole_folder(folder) as temporary:
        _write_attention(loaded, evaluation.attention_sentences, decoding, temporary)
        beam, beam_speed = _translate(loaded, test.sources, decoding)
        greedy, greedy_speed = _translate(loaded, test.sources, decoding.model_copy(update={"beam_size": 1}))
        _write_translations(temporary / "translations.jsonl", test, beam)
        resampling = Resampling(test.groups, evaluation.bootstrap_samples, evaluation.seed)
        hypotheses = [translation.text for translation in beam]
        scores = {
            "bleu": bleu(hypotheses, test.references, resampling),
            "bleu_first_reference": bleu(hypotheses, first_references(test.references), resampling),
            "bleu_greedy": bleu([translation.text for translation in greedy], test.references, resampling),
            "chrf": chrf(hypotheses, test.references, resampling),
        }
        signatures = {name: score.signature for name, score in scores.items()}
        signatures["interval"] = resampling.describe()
        write_json(temporary / "signatures.json", signatures)
    metrics = {
        **_numbers(scores),
        "typography": round(typography_accuracy(hypotheses, loaded.languages.target), DIGITS),
        "sentences": len(beam),
        "references": sum(map(len, test.references)),
        "unfinished": sum(not translation.is_finished for translation in beam),
    }
    write_json(metrics_path, metrics)
    return Evaluation(loaded.fingerprint, metrics, signatures, {"beam": beam_speed, "greedy": greedy_speed})


def _numbers(scores: dict[str, Score]) -> dict[str, float]:
    """`bleu`, `bleu_low`, `bleu_high` and so on."""
    numbers = {}
    for name, score in scores.items():
        numbers[name] = round(score.value, DIGITS)
        numbers[f"{name}_low"] = round(score.low, DIGITS)
        numbers[f"{name}_high"] = round(score.high, DIGITS)
    return numbers


def _translate(
    loaded: LoadedModel, sources: Sequence[str], decoding: DecodingConfig
) -> tuple[list[Translation], float]:
    """The translations, and how many were made in a second; a line on the terminal shows how far it is."""
    name = f"beam {decoding.beam_size}" if decoding.beam_size > 1 else "greedy"
    start = time.perf_counter()
    with tqdm(total=len(sources), desc=f"translating, {name}", unit=" sentences", disable=None) as bar:
        translations = translate(loaded, sources, decoding, bar.update)
    return translations, len(sources) / (time.perf_counter() - start)


def _write_translations(path: Path, test: HeldOut, translations: Sequence[Translation]) -> None:
    """One JSON object a line: what was asked, what came, what was expected."""
    scores = sentence_chrf([translation.text for translation in translations], test.references)
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


def _write_attention(
    loaded: LoadedModel, sentences: Sequence[str], decoding: DecodingConfig, folder: Path
) -> None:
    """Pictures of each sentence in attention/, tensors and tokens in attention_weights/.

    Apart, since DVC shows all that is in attention/ as a plot.
    """
    pictures, tensors = folder / "attention", folder / "attention_weights"
    pictures.mkdir()
    tensors.mkdir()
    for number, translation in enumerate(translate(loaded, sentences, decoding), start=1):
        attention = attention_map(loaded, translation)
        name = file_name(number, translation.source)
        write_attention_map(attention, tensors, name)
        write_pictures(attention, pictures, name)
