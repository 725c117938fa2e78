"""What stage `train` records, without its training; `-v` as there."""

from pathlib import Path

from passerelle.config import TrainParams
from passerelle.params_file import load_params
from passerelle.run_folder import lock_run, repository_root, runs_folder
from passerelle.run_log import log_training_inputs, log_training_results
from passerelle.stages import run_stage
from passerelle.tracking import Curves, open_run

FINGERPRINT = "0123456789abcdef"


def main() -> None:
    params = load_params(TrainParams)
    run_folder = runs_folder() / FINGERPRINT
    history = [{"step": 10, "loss": 2.5}, {"step": 20, "loss": 1.5}]
    with lock_run(run_folder), open_run(FINGERPRINT, run_folder) as log:
        log_training_inputs(log, params, Path("data/shards"), repository_root())
        Curves(FINGERPRINT, run_folder)(history[:1], is_last=True)
        log_training_results(
            log,
            {"steps": 20},
            history,
            model_folder=Path("model"),
            plots=[Path("plots/training.csv")],
            examples=["We see a boat."],
        )


if __name__ == "__main__":
    run_stage(main)
