"""The attention of an evaluation, as files: of chosen sentences, and of all heads over the whole test set."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from passerelle.config import DecodingConfig, EvaluationConfig
from passerelle.decoding.translate import Translation, translate
from passerelle.evaluation.attention_dump import Numbered, written
from passerelle.evaluation.attention_maps import (
    attention_map,
    attention_maps,
    file_name,
    has_attention,
    write_attention_map,
)
from passerelle.evaluation.attention_statistics import attention_statistics
from passerelle.evaluation.head_importance import head_importance
from passerelle.evaluation.heads import head_figure, head_rows, write_head_table
from passerelle.evaluation.heatmaps import save_png
from passerelle.evaluation.held_out import HeldOut
from passerelle.evaluation.plots import write_pictures
from passerelle.evaluation.report.content import ShownAttention
from passerelle.model_folder import LoadedModel

IMPORTANCE_SENTENCES = 200
"""The first so many test sentences measure what heads are worth, each with its first reference."""
NOT_MEASURED = "No test sentence was translated in one part, so that no head could be measured."


@dataclass(frozen=True)
class AttentionFindings:
    """What the report shows."""

    shown: tuple[ShownAttention, ...]
    heads: tuple[dict[str, Any], ...]
    """`heads.head_rows`; none where no test sentence has attention."""
    heads_note: str
    """Over how many sentences they were measured."""


def write_attention(
    loaded: LoadedModel,
    test: HeldOut,
    translations: Sequence[Translation],
    scores: Sequence[float],
    config: EvaluationConfig,
    decoding: DecodingConfig,
    folder: Path,
) -> AttentionFindings:
    """Write into `folder` attention/ (pictures), attention_weights/ (tensors and tokens), heads.csv, and where the
    configuration asks for it attention.arrow.

    translations and scores are those of the test sentences. Raises ValueError where a chosen sentence is not there
    or has no attention.
    """
    pictures, tensors = folder / "attention", folder / "attention_weights"
    pictures.mkdir()
    tensors.mkdir()
    shown = []
    chosen = chosen_translations(translations, scores, config)
    by_text = [(translation, "") for translation in translate(loaded, config.attention_sentences, decoding)]
    for number, (translation, reason) in enumerate([*by_text, *chosen], start=1):
        attention = attention_map(loaded, translation)
        name = file_name(number, translation.source)
        write_attention_map(attention, tensors, name)
        write_pictures(attention, pictures, name)
        shown.append(ShownAttention(attention, reason))
    rows, note = _heads(
        loaded, test, translations, folder / "attention.arrow" if config.attention_dump else None
    )
    if rows:
        write_head_table(folder / "heads.csv", rows)
        save_png(head_figure(rows), pictures / "heads.png")
    return AttentionFindings(tuple(shown), tuple(rows), note)


def chosen_translations(
    translations: Sequence[Translation], scores: Sequence[float], config: EvaluationConfig
) -> list[tuple[Translation, str]]:
    """Test sentences that the configuration names, and the worst, each once, with the reason.

    The worst are of those that have attention: by score, equals in the order of the test set.
    """
    chosen: dict[int, str] = {}
    for index in config.attention_indices:
        if index >= len(translations):
            raise ValueError(
                f"evaluation.attention_indices names test sentence {index}, but they are numbered from 0 to "
                f"{len(translations) - 1}"
            )
        chosen.setdefault(index, f"test sentence {index}")
    able = [index for index, translation in enumerate(translations) if has_attention(translation)]
    for index in sorted(able, key=lambda index: (scores[index], index))[: config.attention_worst]:
        chosen.setdefault(index, f"among the worst, test sentence {index}")
    return [(translations[index], reason) for index, reason in chosen.items()]


def _heads(
    loaded: LoadedModel, test: HeldOut, translations: Sequence[Translation], dump: Path | None
) -> tuple[list[dict[str, Any]], str]:
    """Rows of `heads.head_rows`, and over what they were measured; the whole test set passes once."""
    able = [index for index, translation in enumerate(translations) if has_attention(translation)]
    if not able:
        return [], NOT_MEASURED
    maps = attention_maps(loaded, [translations[index] for index in able])
    bar = tqdm(maps, desc="attention", total=len(able), unit=" sentences", disable=None)
    numbered: Iterable[Numbered] = zip(able, bar, strict=True)
    passing = written(numbered, dump) if dump else numbered
    statistics = attention_statistics(attention for _, attention in passing)
    first = able[:IMPORTANCE_SENTENCES]
    importance = head_importance(
        loaded, [test.sources[index] for index in first], [test.references[index][0] for index in first]
    )
    return head_rows(statistics, importance), (
        f"Means over the queries of {len(able):,} test sentences. The loss is that of the first reference of "
        f"{importance.num_sentences:,} of them, {importance.loss:.3f} nats a token: by how much it rises when the head "
        "alone is masked."
    )
