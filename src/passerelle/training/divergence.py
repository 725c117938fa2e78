"""Training that diverged: steps in a row without finite numbers, and the last one's batch for inspection."""

from pathlib import Path

from passerelle.data.pairs import SentencePairs
from passerelle.data.plan import Indices
from passerelle.files import write_json


class Diverged(FloatingPointError):  # noqa: N818  (a state of training, found at a step)
    """`max_skipped_steps` steps in a row had no finite loss or gradient; weights are those before the first.

    All arguments are the exception's, so that it can be pickled.
    """

    def __init__(
        self, step: int, num_skipped: int, loss: float, gradient_norm: float, micro_batches: list[Indices]
    ) -> None:
        """step: the last one, counted from 1. micro_batches: its plan, those of all workers."""
        super().__init__(step, num_skipped, loss, gradient_norm, micro_batches)
        self.step = step
        self.num_skipped = num_skipped
        self.loss = loss
        self.gradient_norm = gradient_norm
        self.micro_batches = micro_batches

    def __str__(self) -> str:
        return (
            f"step {self.step}: loss {self.loss}, gradient norm {self.gradient_norm}; so it was in each of the last "
            f"{self.num_skipped} steps (training.max_skipped_steps)"
        )


def write_diverged(run_folder: Path, error: Diverged, train_pairs: SentencePairs) -> Path:
    """Write the last step's batch as JSON into the run folder, and return its path.

    For each micro-batch: its rows in data/prepared/train.parquet, counted from 0, and their token ids without
    BOS and EOS.
    """
    path = run_folder / f"diverged-step-{error.step:07d}.json"
    micro_batches = [
        {
            "rows": rows.tolist(),
            "source_ids": [train_pairs.source(row).tolist() for row in rows.tolist()],
            "target_ids": [train_pairs.target(row).tolist() for row in rows.tolist()],
        }
        for rows in error.micro_batches
    ]
    content = {
        "step": error.step,
        "skipped_in_a_row": error.num_skipped,
        "loss": str(error.loss),  # JSON has no NaN
        "gradient_norm": str(error.gradient_norm),
        "micro_batches": micro_batches,
    }
    write_json(path, content)
    return path
