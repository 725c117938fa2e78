"""Stage `tokenizer`: learn the vocabulary from the training text of both languages.

Reads data/prepared/train.parquet and the section `tokenizer` of params.yaml; writes
data/tokenizer/tokenizer.model: SentencePiece's sub-words, or a list of words.
"""

from pathlib import Path

from passerelle.config import TokenizerParams
from passerelle.data.tokenizer import train_tokenizer
from passerelle.params_file import load_params
from passerelle.stages import run_stage


def main() -> None:
    params = load_params(TokenizerParams)
    train_tokenizer(Path("data/prepared/train.parquet"), Path("data/tokenizer"), params.tokenizer)


if __name__ == "__main__":
    run_stage(main)
