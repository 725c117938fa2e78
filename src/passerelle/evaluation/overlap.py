"""Whether a model was trained on sentences, by the hashes that its folder carries."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from passerelle.corpus.sentence_hashes import sentence_hashes
from passerelle.evaluation.held_out import HeldOut
from passerelle.model_folder import training_sentences


def check_no_overlap(held_out: HeldOut, model_folder: Path) -> None:
    """Raises ValueError where the model was trained on a source or a reference of theirs."""
    is_known = trained_on(held_out.sources, held_out.references, model_folder)
    if is_known.any():
        raise ValueError(
            f"{model_folder}: trained on the source or a reference of {is_known.sum()} of the "
            f"{len(is_known)} sentences that it is to be tested on, such as "
            f"{held_out.sources[int(is_known.argmax())]!r}; it and the test set come from different splits: "
            "run `dvc repro`, which trains on the split that the test set belongs to"
        )


def trained_on(
    sources: Sequence[str], references: Sequence[Sequence[str]], model_folder: Path
) -> NDArray[np.bool_]:
    """(N,) of each source, or any of its references, whether the model met it in training.

    Sentences are the same where `corpus.split` holds them for one: by their letters and digits, case-folded.
    """
    trained = training_sentences(model_folder)
    is_known = np.isin(sentence_hashes(sources), trained["source"])
    is_known_reference = np.isin(sentence_hashes(chain.from_iterable(references)), trained["target"])
    owner = np.repeat(np.arange(len(sources)), [len(texts) for texts in references])
    is_known[owner[is_known_reference]] = True
    return is_known
