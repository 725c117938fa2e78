"""What a model would score if its test set were rows drawn at random: a number that a leak has made too good.

Of the rows drawn at random from all pairs, a certain share (`leaks`, `random_shared_share`) has a sentence in
common with training. Such rows, those that have a sentence in common with another row, are scored twice: as the
model answers where it was trained on them, and where their group was held out. The other rows are scored where
held out. Counts of BLEU add up, so a test set that mixes the kinds in the right shares is scored from their
counts, each row against its own translation alone. BLEU sees no spaces of typography.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from passerelle.config import DecodingConfig
from passerelle.decoding.translate import translate
from passerelle.evaluation.corpus_statistics import score_of, statistics
from passerelle.evaluation.leaks import Texts, all_pairs, keys_of
from passerelle.evaluation.overlap import trained_on
from passerelle.model_folder import LoadedModel

SEED = 0
"""Of the draw."""
ROWS = 1000
"""Drawn of each kind at most."""
KINDS = ("leaked", "held_out", "alone")
"""Rows with a sentence in common with another row, trained on and held out; held-out rows that have none."""


@dataclass(frozen=True)
class LeakScore:
    """BLEU, 0 to 100, of each of KINDS and of test sets that mix them."""

    num_rows: dict[str, int]
    """Scored of each of KINDS."""
    bleu: dict[str, float]
    """By kind; one without rows is absent."""
    random_rows: float | None
    """Of rows at random, those with a common sentence as if leaked; None where a kind has no rows."""
    without_leak: float | None
    """Of the same rows, all as if held out."""


def leak_score(
    loaded: LoadedModel,
    model_folder: Path,
    splits: Mapping[str, Texts],
    shared_share: float,
    decoding: DecodingConfig,
    progress: Callable[[int], object] | None = None,
) -> LeakScore:
    """Of the model, on rows of all splits (`leaks.read_splits`); shared_share: of random rows those that leak."""
    rows = all_pairs(splits)
    drawn = _drawn(kinds_of_rows(rows, model_folder))
    sources = sorted({rows.sources[row] for part in drawn.values() for row in part})
    found = translate(loaded, sources, decoding, progress)
    texts = dict(zip(sources, [translation.text for translation in found], strict=True))
    metric, counts = BLEU(), {}
    for kind, part in drawn.items():
        if len(part):
            references = [rows.targets[row] for row in part]
            counts[kind] = statistics(metric, [texts[rows.sources[row]] for row in part], references).mean(0)
    mixed = {}
    for kind in ("leaked", "held_out"):
        shares = {kind: shared_share, "alone": 1.0 - shared_share}
        if all(name in counts for name, share in shares.items() if share):
            totals = sum(share * counts[name] for name, share in shares.items() if share)
            mixed[kind] = score_of(metric, np.asarray(totals) * ROWS)
    return LeakScore(
        num_rows={kind: len(part) for kind, part in drawn.items()},
        bleu={kind: score_of(metric, mean * ROWS) for kind, mean in counts.items()},
        random_rows=mixed.get("leaked"),
        without_leak=mixed.get("held_out"),
    )


def kinds_of_rows(rows: Texts, model_folder: Path) -> NDArray[np.int64]:
    """(N,) of each pair its place in KINDS, or -1: trained on, with no sentence in common with another pair."""
    is_known = trained_on(rows.sources, rows.targets, model_folder)
    keys = keys_of(rows)
    is_common = _is_repeated(keys.sources) | _is_repeated([text for (text,) in keys.targets])
    return np.select([is_common & is_known, is_common, ~is_known], range(3), default=-1)


def _is_repeated(keys: Sequence[str]) -> NDArray[np.bool_]:
    counts = Counter(keys)
    return np.array([counts[key] > 1 for key in keys], bool)


def _drawn(kinds: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """At most ROWS row numbers of each kind, rising."""
    random = np.random.default_rng(SEED)
    drawn = {}
    for number, kind in enumerate(KINDS):
        rows = np.flatnonzero(kinds == number)
        drawn[kind] = np.sort(random.choice(rows, min(ROWS, len(rows)), replace=False))
    return drawn
