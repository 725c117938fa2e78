"""A report of a small untrained model, with every part filled, and sentences that would be markup if they could."""

from pathlib import Path

import numpy as np

from passerelle.data.special import EOS
from passerelle.decoding.translate import Translation
from passerelle.evaluation.attention_maps import AttentionMap, attention_maps
from passerelle.evaluation.attention_statistics import attention_statistics
from passerelle.evaluation.head_importance import head_importance
from passerelle.evaluation.heads import head_rows
from passerelle.evaluation.report.content import (
    Curve,
    ReportContent,
    ReportScore,
    ScaleMark,
    ShownAttention,
    ShownTranslation,
    Table,
)
from passerelle.evaluation.report.selection import best_worst_random
from small_model import SOURCES, TARGETS, small_model

MARKUP = "<script>document.title = 'taken'</script> & <b>bold</b>"
NUM_SHOWN = 12


def example_maps(folder: Path) -> list[AttentionMap]:
    """Of three sentences and what the model is made to say, one of them markup."""
    loaded = small_model(folder)
    pairs = [(SOURCES[0], TARGETS[0]), (MARKUP, MARKUP), (SOURCES[7], TARGETS[20])]
    translations = [
        Translation(source, target, target, (*loaded.tokenizer.encode(target), EOS), -1.0, -1.0, True)
        for source, target in pairs
    ]
    return list(attention_maps(loaded, translations))


def example_content(folder: Path) -> ReportContent:
    maps = example_maps(folder)
    loaded = small_model(folder)
    random = np.random.default_rng(0)
    rows = [
        ShownTranslation(
            number, source, hypothesis, (hypothesis.replace("bateau", "clou"), TARGETS[-1 - number]), score
        )
        for number, (source, hypothesis, score) in enumerate(
            zip(SOURCES, TARGETS, random.uniform(5, 100, len(SOURCES)).round(1).tolist(), strict=False)
        )
    ]
    rows.append(ShownTranslation(len(rows), MARKUP, MARKUP, ("rien",), 1.0, is_finished=False))
    steps = [(float(step), 9.0 / (1 + step / 300)) for step in range(10, 2001, 10)]
    return ReportContent(
        title="Phrasebook <small>",
        subtitle="English to French · Transformer, 2 + 2 layers · 36 test sentences",
        scores=(
            ReportScore(
                "BLEU", 49.8962, 48.2893, 51.3898, "nrefs:var|case:mixed|tok:13a|smooth:exp|version:2.6.0"
            ),
            ReportScore("chrF++", 64.1, 63.0, 65.2, "nrefs:var|case:mixed|nc:6|nw:2|version:2.6.0"),
            ReportScore("TER", 38.5, None, None, "nrefs:var|tok:tercom|version:2.6.0"),
        ),
        scale=(
            ScaleMark("copy of the source", 3.1),
            ScaleMark("translation memory", 21.7, 20.1, 23.3),
            ScaleMark("this model", 49.8962, 48.2893, 51.3898, is_model=True),
            ScaleMark("one human against the others", 52.4, 50.9, 54.0),
        ),
        score_tables=(
            Table(
                "By length",
                ("words", "sentences", "BLEU"),
                (("1 to 4", 800, 55.21), ("5 to 8", 1000, 49.0)),
                "Of the source.",
            ),
        ),
        curves=(
            Curve("Loss", "nats a token", {"training": steps, "validation": steps[24::25]}),
            Curve(
                "BLEU of validation sentences",
                "BLEU",
                {"validation": [(s, 50 - 3 * v) for s, v in steps[24::25]]},
            ),
        ),
        corpus_tables=(
            Table("Counts", ("what", "pairs"), (("read", 167130), ("rejected", 203))),
            Table("Rejections", ("reason", "pairs"), (("duplicate pair", 203), (MARKUP, 0))),
        ),
        translations=best_worst_random(rows, NUM_SHOWN, seed=1),
        attention=tuple(ShownAttention(one, "chosen" if number else "") for number, one in enumerate(maps)),
        heads=tuple(head_rows(attention_statistics(maps), head_importance(loaded, SOURCES[:5], TARGETS[:5]))),
        heads_note="Means over 3 sentences; the loss over 5.",
        lineage={
            "code": {"commit": "0123abc", "dirty": False},
            "data": {"test": "d41d8cd9"},
            "seeds": [0, 12345],
        },
    )
