"""Stage `train`, held in validations where a test asks for it, so that what it then does comes at a known step.

While the file `holds/step-0000040` stands beside the folder of runs, no worker comes out of the validation after the
one whose checkpoint has that name.
"""

import os
import runpy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from passerelle.evaluation import validation_bleu as module
from passerelle.training.checkpoint import checkpoint_folders
from passerelle.training.group import Bleu, Reduce

TRAIN = Path(__file__).parents[2] / "pipeline" / "train.py"


@dataclass(frozen=True)
class HeldBleu:
    """BLEU of validations, which waits before it measures."""

    bleu: Bleu
    runs: Path

    def on(
        self, device: torch.device, *, rank: int, num_workers: int, reduce: Reduce
    ) -> Callable[[Mapping[str, Tensor]], float]:
        measure = self.bleu.on(device, rank=rank, num_workers=num_workers, reduce=reduce)
        (run_folder,) = self.runs.iterdir()

        def bleu(parameters: Mapping[str, Tensor]) -> float:
            for latest in checkpoint_folders(run_folder)[-1:]:
                while (self.runs.parent / "holds" / latest.name).exists():
                    time.sleep(0.05)
            return measure(parameters)

        return bleu


def main() -> None:
    of_stage = module.validation_bleu

    def held(*arguments: object) -> HeldBleu:
        return HeldBleu(of_stage(*arguments), Path(os.environ["PASSERELLE_RUNS"]))

    module.validation_bleu = held
    runpy.run_path(str(TRAIN), run_name="__main__")


if __name__ == "__main__":
    main()
