"""Stage `evaluate`: translate the test sentences, score them, look into the attention, and write a report.

Reads model/, plots/*.csv, data/prepared, data/shards, metrics/*.json and the sections decoding and evaluation
of params.yaml. Writes evaluation/: report.html (all there is to see, on one page), translations.jsonl, scores.json
(every score with its signature), lineage.json (what the scores were made from), heads.csv, attention/ with pictures
and attention_weights/ with tensors and tokens of the chosen sentences; and two DVC metrics.
metrics/evaluation.json:
  bleu, chrf, chrf_pp, ter  the search of params.yaml against all references of each sentence
  bleu_first_reference      against the first reference alone
  bleu_greedy               greedy search against all references
  …_low, …_high             the 95 % confidence interval of each
  typography                share of punctuation marks with the right spaces
  unfinished                translations cut at the maximum length
  in_parts, source_cut      sources longer than decoding.max_source_tokens: translated in parts, or cut
metrics/leaks.json: what training shares with test and validation sentences, and with rows drawn at random.
With `--variant NAME`, what NAME/params.yaml says replaces what params.yaml says, and the model is read from NAME/
and all that is written goes below it.
All of it goes into the MLflow run that trained the model; a server that is away delays nothing. The environment:
  PASSERELLE_DECODING_PROCESSES  auto (default: as many as pay, at most one a core) or a number
"""

from pathlib import Path

from passerelle.config import EvaluateParams
from passerelle.evaluation.evaluate import Inputs, evaluate
from passerelle.params_file import load_params
from passerelle.run_folder import repository_root, runs_folder
from passerelle.run_log import log_evaluation
from passerelle.stages import run_variant_stage
from passerelle.tracking import open_run


def main(folder: Path) -> None:
    params = load_params(EvaluateParams, folder / "params.yaml")
    inputs = Inputs(
        model=folder / "model",
        prepared=Path("data/prepared"),
        shards=Path("data/shards"),
        corpus_counts=Path("metrics/corpus.json"),
        training_facts=folder / "metrics/training.json",
        curves=folder / "plots",
        repository=repository_root(),
    )
    result = evaluate(inputs, folder / "evaluation", folder / "metrics", params.decoding, params.evaluation)
    with open_run(result.fingerprint, runs_folder() / result.fingerprint) as log:
        log_evaluation(
            log,
            params,
            test=inputs.prepared / "test.parquet",
            metrics=result.metrics,
            leaks=result.leaks,
            details=result.scores.details(),
            signatures=result.scores.signatures(),
            speed=result.sentences_per_second,
            folder=folder / "evaluation",
            repository=inputs.repository,
        )
    print(result.summary())


if __name__ == "__main__":
    run_variant_stage(main)
