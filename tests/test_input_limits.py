"""Bombs and endless lines are refused by a limit that is named, in little memory: in a process of their own."""

import gzip
import json
import re
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from passerelle.commands.lines import MAX_LINE_BYTES, read_lines
from passerelle.config import CleaningConfig, CorpusConfig, LanguagesConfig, SplitConfig
from passerelle.corpus.fetch import fetch_corpus
from passerelle.corpus.prepare import prepare_corpus

LIMIT = 50_000_000
MOST_MEMORY = 300_000_000
LARGE = 400_000_000
ZEROS = bytes(1_000_000)


def zip_bomb(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("pairs.txt", "w") as text,
    ):
        for _ in range(LARGE // len(ZEROS)):
            text.write(ZEROS)


def gzip_bomb(path: Path) -> None:
    path.write_bytes(gzip.compress(ZEROS) * (LARGE // len(ZEROS)))


def fetch(path: Path) -> str:
    config = CorpusConfig(name="bomb", origin="file", path=str(path), max_bytes=LIMIT, attribution="none")
    try:
        fetch_corpus(config, path.parent / "raw")
    except ValueError as error:
        return str(error)
    return "read"


def long_lines(path: Path) -> None:
    """Good pairs, with a line of 100 MB between them, and 3,000 lines that are 1 byte too long."""
    pairs = [f"Number {number}.\tNombre {number}.\n".encode() for number in range(40)]
    with path.open("wb") as file:
        file.writelines(pairs[:20])
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\n")
        for _ in range(3000):
            file.write(b"a\t" + b"b" * 99_999 + b"\n")
        file.writelines(pairs[20:])


def prepare(path: Path) -> str:
    split = SplitConfig(valid_sentences=2, test_sentences=2)
    counts = prepare_corpus(path, path.parent / "prepared", LanguagesConfig(), CleaningConfig(), split)
    rejected = pq.ParquetFile(path.parent / "prepared/rejected.parquet")
    return f"kept {counts['kept']}, too long {counts['rejected']['line too long']}, {rejected.metadata.num_rows} rows"


def read(path: Path) -> str:
    with path.open("rb") as file:
        try:
            return f"{len(list(read_lines(file, path.name)))} lines"
        except ValueError as error:
            return str(error)


def peak_memory() -> int:
    """Bytes of this process; Linux counts its parent's into `ru_maxrss`, but not into this."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


CASES: dict[str, tuple[Callable[[Path], None], Callable[[Path], str], str]] = {
    "zip": (
        zip_bomb,
        fetch,
        f"its text has more than corpus.max_bytes={LIMIT} bytes; raise that in params.yaml",
    ),
    "gzip": (
        gzip_bomb,
        fetch,
        f"its text has more than corpus.max_bytes={LIMIT} bytes; raise that in params.yaml",
    ),
    "corpus": (long_lines, prepare, "kept 40, too long 3001, 3001 rows"),
    "text": (
        long_lines,
        read,
        f"text, line 21: over {MAX_LINE_BYTES} bytes; put one sentence or paragraph on a",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_too_large_is_refused_in_little_memory(name: str, tmp_path: Path) -> None:
    make, _, message = CASES[name]
    make(tmp_path / name)
    command = [sys.executable, __file__, name, str(tmp_path / name)]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    said, num_bytes = json.loads(child.stdout)
    assert message in said
    assert "\n" not in said
    assert num_bytes < MOST_MEMORY


if __name__ == "__main__":
    said = CASES[sys.argv[1]][1](Path(sys.argv[2]))
    print(json.dumps([said, peak_memory()]))
