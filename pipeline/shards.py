"""Stage `shards`: turn the sentences of each split into token ids, in Arrow files.

Reads data/prepared/{train,valid,test}.parquet, data/tokenizer and the section `shards` of params.yaml;
writes data/shards/{train,valid,test}/ and metrics/shards.json (a DVC metric).
"""

from pathlib import Path

from passerelle.config import ShardsParams
from passerelle.data.shards import shard_metrics, write_shards
from passerelle.data.tokenizer import load_tokenizer
from passerelle.files import write_json
from passerelle.params_file import load_params
from passerelle.stages import run_stage


def main() -> None:
    params = load_params(ShardsParams)
    tokenizer = load_tokenizer(Path("data/tokenizer"))
    metrics = {}
    for split in ("train", "valid", "test"):
        parquet, folder = Path(f"data/prepared/{split}.parquet"), Path(f"data/shards/{split}")
        metrics[split] = shard_metrics(write_shards(parquet, folder, tokenizer, params.shards))
    write_json(Path("metrics/shards.json"), metrics)


if __name__ == "__main__":
    run_stage(main)
