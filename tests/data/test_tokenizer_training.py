"""The same text gives the same tokenizer, and what cannot be learnt from is named."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from passerelle.config import TokenizerConfig
from passerelle.data.tokenizer import load_tokenizer, train_tokenizer
from small_corpus import SOURCES, TARGETS, VOCAB_SIZE, learn

ROOT = Path(__file__).parents[2]


def test_training_text_with_reserved_characters_is_learnt_from(tmp_path: Path) -> None:
    odd = ["<s> </s> <pad> <unk> <0x41> <s>", "▁Ð▁ ▁Ð▁", "ß ▅", "x\tÞ", "N\x00Ñ", "a\nµ"]
    sources = [*SOURCES, *odd]
    tokenizer = learn(sources, [*TARGETS, *odd], tmp_path, vocab_size=VOCAB_SIZE)
    assert [tokenizer.decode(tokenizer.encode(text)) for text in odd] == odd
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    assert {*"ÐßÞÑµ"} <= set(pieces)
    assert not {*"▅\t\n\x00"} & set("".join(pieces))


def test_the_model_is_the_same_from_any_folder_and_on_any_number_of_cores(
    small_train: Path, tmp_path: Path
) -> None:
    train_tokenizer(small_train, tmp_path / "here", TokenizerConfig(vocab_size=VOCAB_SIZE))
    (tmp_path / "elsewhere").mkdir()
    code = (
        "import os\n"
        "if hasattr(os, 'sched_setaffinity'): os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from pathlib import Path\nfrom passerelle.config import TokenizerConfig\n"
        "from passerelle.data.tokenizer import train_tokenizer\n"
        f"train_tokenizer(Path('../train.parquet'), Path('t'), TokenizerConfig(vocab_size={VOCAB_SIZE}))"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "elsewhere", env=environment, check=True)
    model = (tmp_path / "here" / "tokenizer.model").read_bytes()
    assert (tmp_path / "elsewhere" / "t" / "tokenizer.model").read_bytes() == model
    assert str(tmp_path).encode() not in model
    assert b"train.parquet" not in model


def test_a_long_sentence_is_learnt_from(tmp_path: Path) -> None:
    sources = [*SOURCES, "the bread " * 2000 + "ÿ"]
    tokenizer = learn(sources, [*TARGETS, "x"], tmp_path, vocab_size=VOCAB_SIZE)
    assert "ÿ" in tokenizer.pieces(range(tokenizer.vocab_size))


def test_a_sample_keeps_its_limit_and_takes_one_from_each_part_of_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passerelle.data.prepared.BATCH_ROWS", 33)
    # Every sentence is a character of its own: the vocabulary shows which were seen.
    sources, targets = [chr(0x4E00 + i) for i in range(300)], [chr(0x5E00 + i) for i in range(300)]
    with pytest.raises(ValueError, match=r"at most \d+") as error:
        learn(sources, targets, tmp_path, kind="bpe", vocab_size=9999, max_sentences=71)
    largest = int(str(error.value).split("at most ")[1].split(";")[0])
    tokenizer = learn(sources, targets, tmp_path, kind="bpe", vocab_size=largest, max_sentences=71)
    pieces = set(tokenizer.pieces(range(tokenizer.vocab_size)))
    as_read = [text for i in range(0, 300, 33) for text in sources[i : i + 33] + targets[i : i + 33]]
    positions = [position for position, text in enumerate(as_read) if text in pieces]
    assert len(positions) <= 71
    for part in range(71):
        begin, end = part * 600 / 71, (part + 1) * 600 / 71
        assert any(int(begin) <= position < end for position in positions)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_the_largest_vocabulary_named_is_the_largest(kind: str, tmp_path: Path) -> None:
    message = r"^tokenizer.vocab_size is 5000, but the text in .*train.parquet supports at most \d+; lower it"
    with pytest.raises(ValueError, match=message) as error:
        learn(SOURCES, TARGETS, tmp_path, kind=kind, vocab_size=5000)
    largest = int(str(error.value).split("at most ")[1].split(";")[0])
    assert learn(SOURCES, TARGETS, tmp_path, kind=kind, vocab_size=largest).vocab_size == largest
    with pytest.raises(ValueError, match=f"supports at most {largest};"):
        learn(SOURCES, TARGETS, tmp_path, kind=kind, vocab_size=largest + 1)


def test_the_smallest_vocabulary_named_is_the_smallest(tmp_path: Path) -> None:
    signs = [chr(0x4E00 + i) + chr(0x4E01 + i) for i in range(100)]
    with pytest.raises(ValueError, match=r"^tokenizer.vocab_size is 300, .* needs at least 362: ") as error:
        learn(signs, signs, tmp_path, kind="bpe", vocab_size=300)
    assert "one piece for each character, 256 bytes and 4 special ones; raise it" in str(error.value)
    assert learn(signs, signs, tmp_path, kind="bpe", vocab_size=362).vocab_size == 362
    with pytest.raises(ValueError, match=r"needs at least 362"):
        learn(signs, signs, tmp_path, kind="bpe", vocab_size=361)


def no_pairs(path: Path) -> None:
    strings = pa.array([], pa.string())
    pq.write_table(pa.table({"source": strings, "target": strings}), path)


def no_target(path: Path) -> None:
    pq.write_table(pa.table({"source": ["a"] * 20_001, "target": ["b"] * 20_000 + [None]}), path)


def no_column(path: Path) -> None:
    pq.write_table(pa.table({"source": ["a"], "cible": ["b"]}), path)


def no_parquet(path: Path) -> None:
    path.write_text("a\tb\n")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (no_pairs, r"no sentences to learn a vocabulary from"),
        (no_target, r"1 rows have no target; run stage prepare again"),
        (no_column, r"expected the columns source and target .*, found source, cible"),
        (no_parquet, r"not a Parquet file"),
        (lambda path: None, r"no such file; run stage prepare first"),
    ],
)
def test_unusable_training_text_is_named(make: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    make(tmp_path / "train.parquet")
    with pytest.raises(ValueError, match=f"^{tmp_path}/train.parquet: {message}"):
        train_tokenizer(tmp_path / "train.parquet", tmp_path / "t", TokenizerConfig(vocab_size=VOCAB_SIZE))
    assert not (tmp_path / "t").exists()


def test_a_failure_leaves_the_old_tokenizer_alone(tmp_path: Path) -> None:
    old = learn(SOURCES, TARGETS, tmp_path, vocab_size=VOCAB_SIZE)
    with pytest.raises(ValueError, match="supports at most"):
        learn(SOURCES, TARGETS, tmp_path, vocab_size=5000)
    assert load_tokenizer(tmp_path / "tokenizer").sha256 == old.sha256
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokenizer", "train.parquet"]


def test_learning_prints_nothing(
    small_train: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    train_tokenizer(small_train, tmp_path / "t", TokenizerConfig(vocab_size=VOCAB_SIZE))
    with pytest.raises(ValueError, match="supports at most"):
        train_tokenizer(small_train, tmp_path / "t", TokenizerConfig(vocab_size=5000))
    assert capfd.readouterr() == ("", "")


def test_the_stage_says_in_one_line_what_is_wrong(small_train: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "prepared").mkdir(parents=True)
    small_train.rename(tmp_path / "data" / "prepared" / "train.parquet")
    (tmp_path / "params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    command = [sys.executable, ROOT / "pipeline" / "tokenizer.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("error: tokenizer.vocab_size is 8000, but the text in data/prepared/train")
    assert run.stderr.count("\n") == 1
