"""What is kept of training that diverged."""

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

from passerelle.training.divergence import Diverged, write_diverged
from tiny import noted_sentences, run, spoilt_steps, tiny_config, tiny_pairs


def test_the_batch_that_is_kept_is_the_one_that_was_trained_on(tmp_path: Path) -> None:
    pairs = tiny_pairs(200, seed=1)  # as `run` takes
    with noted_sentences() as notes, spoilt_steps({3, 4}), pytest.raises(Diverged) as caught:
        run(tiny_config(max_skipped_steps=2), tmp_path / "checkpoints")
    path = write_diverged(tmp_path, caught.value, pairs)
    assert path == tmp_path / "diverged-step-0000004.json"
    kept = json.loads(path.read_text())
    assert (kept["step"], kept["skipped_in_a_row"], kept["loss"]) == (4, 2, "nan")
    assert len(kept["micro_batches"]) == 3
    sentences = []
    for micro_batch in kept["micro_batches"]:
        columns = (micro_batch[name] for name in ("rows", "source_ids", "target_ids"))
        for row, source, target in zip(*columns, strict=True):
            assert source == pairs.source(row).tolist()
            sentences.append([*source, 3, 2, *target])  # EOS of the source, BOS of the target
    assert sentences == notes[4]


def test_the_error_can_cross_processes() -> None:
    error = Diverged(7, 3, math.nan, math.inf, [np.array([4, 5]), np.array([9])])
    copy = pickle.loads(pickle.dumps(error))
    assert (
        str(copy)
        == str(error)
        == (
            "step 7: loss nan, gradient norm inf; so it was in each of the last 3 steps (training.max_skipped_steps)"
        )
    )
    assert [rows.tolist() for rows in copy.micro_batches] == [[4, 5], [9]]
