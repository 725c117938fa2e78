"""Stage `train`: train the model on Ray, or go on where an interrupted training stopped.

Reads data/prepared, data/tokenizer, data/shards and the sections languages, model and training of params.yaml;
writes model/ (all that translating needs), metrics/training.json (a DVC metric), plots/training.csv and
plots/validation.csv.

The state of the run is kept in .runs/<fingerprint>/, named after all that determines the result: starting the
stage again continues or publishes the same run. With `--variant NAME`, what NAME/params.yaml says replaces what
params.yaml says, and all that is written goes below NAME/. The environment says where it is trained and recorded:
  PASSERELLE_NUM_WORKERS  auto (default: every GPU, else 2 CPU workers) or a number
  RAY_ADDRESS             host:port of a running Ray cluster; unset: this machine
  PASSERELLE_RUNS         instead of .runs; on a cluster, a folder that its machines share
  MLFLOW_TRACKING_URI     unset: mlflow.db in the root
  PASSERELLE_EXCHANGE_SECONDS  how long workers wait for one another (300)
  PASSERELLE_GRACE_SECONDS     how long a last checkpoint is waited for when stopped (20)
"""

from pathlib import Path

from passerelle.config import TrainParams
from passerelle.corpus.sentence_hashes import hashes_of_pairs
from passerelle.data.pairs import open_shards
from passerelle.data.tokenizer import MODEL_NAME, load_tokenizer
from passerelle.evaluation.validation_bleu import validation_bleu
from passerelle.params_file import load_params
from passerelle.run_folder import lock_run, repository_root, runs_folder
from passerelle.run_log import log_training_inputs, log_training_results
from passerelle.stages import run_variant_stage
from passerelle.tracking import Curves, open_run
from passerelle.training.fingerprint import run_fingerprint
from passerelle.training.ray_train import train_on_ray
from passerelle.training.workers import check_environment


def main(folder: Path) -> None:
    params = load_params(TrainParams, folder / "params.yaml")
    check_environment(params.training.micro_batches_per_step)
    prepared, shards, tokenizer_folder = Path("data/prepared"), Path("data/shards"), Path("data/tokenizer")
    tokenizer, valid_pairs = load_tokenizer(tokenizer_folder), open_shards(shards / "valid")
    fingerprint = run_fingerprint(params, shards, tokenizer.sha256)
    run_folder = runs_folder() / fingerprint
    with lock_run(run_folder), open_run(fingerprint, run_folder) as log:
        log_training_inputs(log, params, shards, repository_root())
        train_on_ray(
            params,
            shards=shards,
            vocab_size=tokenizer.vocab_size,
            run_folder=run_folder,
            on_rows=Curves(fingerprint, run_folder),
            bleu=validation_bleu(params, prepared / "valid.parquet", tokenizer_folder),
        )
        from passerelle.training.publish import publish  # loads torch, for which Ray's start need not wait

        published = publish(
            run_folder,
            params,
            tokenizer_model=tokenizer_folder / MODEL_NAME,
            tokenizer=tokenizer,
            valid_pairs=valid_pairs,
            training_sentences=hashes_of_pairs(prepared / "train.parquet"),
            model_folder=folder / "model",
            metrics_path=folder / "metrics/training.json",
            plots_folder=folder / "plots",
        )
        examples = [tokenizer.decode(valid_pairs.source(row).tolist()) for row in range(len(valid_pairs))[:3]]
        log_training_results(
            log,
            published.metrics,
            published.history,
            model_folder=folder / "model",
            plots=[folder / "plots/training.csv", folder / "plots/validation.csv"],
            examples=examples,
        )


if __name__ == "__main__":
    run_variant_stage(main)
