"""Stage `prepare`: clean the sentence pairs and deal them out to train, valid and test.

Reads data/raw/pairs.txt and the sections `languages`, `cleaning` and `split` of params.yaml.

Writes data/prepared/: train.parquet (source, target, group, row), valid.parquet and test.parquet (source,
references, group, row), rejected.parquet (row, reason, text); and metrics/corpus.json, the counts.
No sentence of either language is on two sides. Prints one line of counts.
"""

from pathlib import Path

from passerelle.config import PrepareParams
from passerelle.corpus.prepare import prepare_corpus
from passerelle.files import write_json
from passerelle.params_file import load_params
from passerelle.stages import run_stage


def main() -> None:
    params = load_params(PrepareParams)
    counts = prepare_corpus(
        Path("data/raw/pairs.txt"), Path("data/prepared"), params.languages, params.cleaning, params.split
    )
    write_json(Path("metrics/corpus.json"), counts)
    sides = ", ".join(f"{counts[side]['references']} {side}" for side in ("train", "valid", "test"))
    print(f"{counts['read']} lines read, {counts['rejected']['total']} rejected; pairs kept: {sides}")


if __name__ == "__main__":
    run_stage(main)
