"""Stage `evaluate`: translate the test sentences, score them, and draw the attention of chosen sentences.

Reads model/, data/prepared/test.parquet and the sections decoding and evaluation of params.yaml. Writes
evaluation/ (translations.jsonl, signatures.json, attention/ with pictures and attention_weights/ with tensors
and tokens of the sentences in evaluation.attention_sentences) and metrics/evaluation.json (a DVC metric):
  bleu, chrf            beam search against all references of each sentence
  bleu_first_reference  against the first reference alone
  bleu_greedy           greedy search against all references
  …_low, …_high         the 95 % confidence interval of each
  typography            share of punctuation marks with the right spaces
  unfinished            translations cut at the maximum length
With `--variant NAME`, what NAME/params.yaml says replaces what params.yaml says, and the model is read from NAME/
and all that is written goes below it.
All of it goes into the MLflow run that trained the model; a server that is away delays nothing.
"""

from pathlib import Path

from passerelle.config import EvaluateParams, load_params
from passerelle.evaluation.evaluate import evaluate
from passerelle.files import sha256_of_file
from passerelle.run_folder import runs_folder
from passerelle.stages import run_variant_stage
from passerelle.tracking import open_run


def main(folder: Path) -> None:
    params = load_params(EvaluateParams, folder / "params.yaml")
    test = Path("data/prepared/test.parquet")
    result = evaluate(
        folder / "model",
        test,
        folder / "evaluation",
        folder / "metrics/evaluation.json",
        params.decoding,
        params.evaluation,
    )
    with open_run(result.fingerprint, runs_folder() / result.fingerprint) as log:
        log.log_params(params.model_dump())
        log.log_dataset("test", test, sha256_of_file(test), {"rows": result.metrics["sentences"]})
        log.log_metrics({f"test.{name}": value for name, value in result.metrics.items()})
        log.log_metrics({f"speed.{name}": value for name, value in result.sentences_per_second.items()})
        log.log_tags({f"signature.{name}": text for name, text in result.signatures.items()})
        log.log_files(folder / "evaluation", "evaluation")
    print(result.summary())


if __name__ == "__main__":
    run_variant_stage(main)
