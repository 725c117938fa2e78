"""Stage `fetch`: find the corpus, verify it, keep its raw text.

Reads the section `corpus` of params.yaml. Looks for the archive, or the text itself, in this order: the
environment variable that corpus.archive_variable names, the file corpus.path, the addresses corpus.urls.
With `origin: phrasebook` it writes the bundled synthetic sentence pairs instead.

Writes data/raw/pairs.txt (the text byte for byte, its SHA-256 checked) and data/raw/ATTRIBUTION.txt.
Where nothing is found it says what can be done; `make demo` needs no corpus.
"""

from pathlib import Path

from passerelle.config import FetchParams
from passerelle.corpus.fetch import fetch_corpus
from passerelle.params_file import load_params
from passerelle.stages import run_stage


def main() -> None:
    params = load_params(FetchParams)
    fetch_corpus(params.corpus, Path("data/raw"))


if __name__ == "__main__":
    run_stage(main)
