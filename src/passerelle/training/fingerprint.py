"""The name of a run: a hash of everything that determines its result.

Hashed are the parameters that the stage `train` receives (`languages`, `model`, `training`), the hash of the
content of the training and validation shards, the tokenizer, and the source of the code that trains (`data/`,
`nn/`, `training/`, `models.py`). Started again with all of these the same, training continues or is found
finished; with any of them changed, it is another run. Not hashed is what does not change the result: number
of workers, machine, addresses, versions of libraries, and after how many skipped steps training gives up.
"""

import hashlib
import json
from pathlib import Path

from passerelle.config import TrainParams
from passerelle.data.manifest import read_manifest
from passerelle.files import sha256_of_file

PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = ("data", "nn", "training", "models.py")
SPLITS = ("train", "valid")
NUM_DIGITS = 16
WITHOUT_EFFECT = {"training": {"max_skipped_steps"}}
"""Parameters that do not change a run that comes to its end; raised, they let one that gave up go on."""


def run_fingerprint(params: TrainParams, shards: Path, tokenizer_sha256: str) -> str:
    """16 hexadecimal digits for training with these parameters on the shards in `shards`/{train,valid}."""
    manifests = {split: read_manifest(shards / split) for split in SPLITS}
    for split, manifest in manifests.items():
        if manifest["tokenizer_sha256"] != tokenizer_sha256:
            raise ValueError(
                f"{shards / split}: made with tokenizer {manifest['tokenizer_sha256']}, but the tokenizer is "
                f"{tokenizer_sha256}; run stage shards again"
            )
    content = {
        "params": params.model_dump(mode="json", exclude=WITHOUT_EFFECT),
        "shards": {split: manifest["content_sha256"] for split, manifest in manifests.items()},
        "tokenizer": tokenizer_sha256,
        "code": code_sha256(PACKAGE),
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:NUM_DIGITS]


def code_sha256(package: Path) -> str:
    """Hash of the names and content of the Python files, in the folder of the package, that train."""
    digest = hashlib.sha256()
    for source in SOURCES:
        path = package / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(package).as_posix()} {sha256_of_file(file)}\n".encode())
    return digest.hexdigest()
