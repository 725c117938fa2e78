"""Install the systems that training is compared with, each into an environment of its own.

    python benchmarks/peers/install.py [--again]

The environments lie in benchmarks/.environments, or in the folder that PASSERELLE_PEERS names. Each also sees the
packages of the environment that runs this script, so that all systems train with one and the same torch.

Releases that ask for an older torch, protobuf or sentencepiece are installed without their dependencies, and beside
them what they import in training; nothing of theirs is changed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(os.environ.get("PASSERELLE_PEERS", ROOT / "benchmarks/.environments"))
IMPORTED = [
    "configargparse",
    "ctranslate2",
    "pyahocorasick",
    "pyonmttok",
    "pyyaml",
    "tensorboard",
    "waitress",
]
"""By both OpenNMT-py and Eole."""
PEERS: dict[str, tuple[list[str], list[str]]] = {
    "hugging_face": ([], ["transformers==5.24.0"]),
    "opennmt_py": (["OpenNMT-py==3.5.1"], [*IMPORTED, "fasttext-wheel", "six", "spacy"]),
    "eole": (
        ["eole==0.6.4"],
        [*IMPORTED, "huggingface_hub", "six", "subword-nmt", "tokenizers", "torch-optimi"],
    ),
    "joeynmt": (
        ["joeynmt==2.3.0"],
        ["importlib_metadata", "plotly", "sacremoses", "subword-nmt", "tensorboard"],
    ),
}
"""Environment -> packages installed without their dependencies, and those installed with them."""


def python_of(peer: str) -> Path:
    """The interpreter of the peer's environment; it is absent until the peer is installed."""
    return ENVIRONMENTS / peer / "bin/python"


def install(peer: str) -> None:
    """Create the environment anew; leaves none where a package cannot be installed."""
    folder = ENVIRONMENTS / peer
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    [own_packages] = folder.glob("lib/python*/site-packages")
    (own_packages / "shared.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    alone, others = PEERS[peer]
    pip = [python_of(peer), "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
    try:
        for options in ([*alone, "--no-deps"] if alone else [], others):
            if options:
                subprocess.run([*pip, *options], check=True)
    except subprocess.CalledProcessError:
        shutil.rmtree(folder)
        sys.exit(f"error: {peer} could not be installed")


def main() -> None:
    """Install those that are absent."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--again", action="store_true", help="install also those that are there")
    arguments = parser.parse_args()
    for peer in PEERS:
        if arguments.again or not python_of(peer).exists():
            print(f"installing {peer} into {ENVIRONMENTS / peer}")
            install(peer)


if __name__ == "__main__":
    main()
