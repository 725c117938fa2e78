"""Over 10,000 damaged inputs: each is read, or refused by the documented exception in one line.

Nothing crashes, hangs or takes the memory: while a test of this file runs, its process may grow by 2 GB. The inputs
are the same in each run. A mutation is a few bytes changed, put in, taken out, or all behind one cut off; where
hashes would show it, they are made anew, as somebody could who gives such a file to others.
"""

import gzip
import io
import json
import logging
import random
import resource
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from ruamel.yaml import YAML
from safetensors.torch import save

from passerelle.commands.lines import read_lines
from passerelle.config import DecodingConfig, FetchParams, ShardsConfig, TokenizerConfig
from passerelle.corpus.archive import unpack_text
from passerelle.corpus.clean import clean_text
from passerelle.corpus.read import read_pairs
from passerelle.data.manifest import MANIFEST_NAME
from passerelle.data.pairs import open_shards, verify_shards
from passerelle.data.shards import write_shards
from passerelle.data.tokenizer import load_tokenizer, train_tokenizer
from passerelle.decoding.translate import translate
from passerelle.files import sha256_of_file
from passerelle.model_folder import FILES, load_model, training_sentences
from passerelle.params_file import ParamsError, load_params
from passerelle.training.checkpoint import (
    DamagedCheckpoint,
    latest_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from small_model import SOURCES, TARGETS, small_model, write_small_model

ROOT = Path(__file__).parents[1]
GROWTH = 2 << 30
TEXT = "Go.\tVa !\r\nHé.\tSalut !\tTom\n\n".encode() * 20
VALUES = (
    None,
    True,
    -1,
    0,
    2,
    10**19,
    1e400,
    -1.5,
    "",
    "a\nb",
    "é" * 500,
    "../x",
    [],
    [[]],
    {},
    {"a": {}},
    [3, "x"],
)


@pytest.fixture(autouse=True)
def _bounded_memory() -> Iterator[None]:
    statm = Path("/proc/self/statm")
    if not statm.exists():  # elsewhere a process may not be told so
        yield
        return
    size = int(statm.read_text().split()[0]) * resource.getpagesize()
    old = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + GROWTH, old[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, old)


def mutated(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        place = draw.randrange(len(changed) + 1)
        match draw.randrange(6):
            case 0:
                changed[place : place + 1] = bytes([draw.choice((0, 0x7F, 0x80, 0xFF, draw.randrange(256)))])
            case 1:
                changed[place : place + 4] = draw.choice((b"\xff" * 4, bytes(4), draw.randbytes(4)))
            case 2:
                del changed[place : place + draw.randrange(1, 30)]
            case 3:
                changed[place:place] = draw.randbytes(draw.randrange(1, 9))
            case 4:
                changed[place:place] = changed[place : place + draw.randrange(1, 60)]
            case 5 if draw.random() < 0.3:
                del changed[place:]
    return bytes(changed)


def changed_value(content: Any, draw: random.Random) -> Any:
    """JSON or YAML content with one value in it changed, or one key lost or new."""
    if isinstance(content, dict) and content and draw.random() < 0.9:
        key = draw.choice(sorted(content))
        if draw.random() < 0.1:
            return {name: value for name, value in content.items() if name != key}
        if draw.random() < 0.1:
            return content | {
                draw.choice(("", "x", f"{key}s", "a\nb", "\u2028", "é" * 99)): draw.choice(VALUES)
            }
        return content | {key: changed_value(content[key], draw)}
    if isinstance(content, list) and content and draw.random() < 0.8:
        place = draw.randrange(len(content))
        return [*content[:place], changed_value(content[place], draw), *content[place + 1 :]]
    return draw.choice(VALUES)


def is_read(action: Callable[[], object], kind: type[Exception] = ValueError, name: str = "") -> bool:
    """Whether it is read; else it must be refused by just this kind, in one short line that names the file."""
    try:
        action()
    except kind as error:
        found = error
    else:
        return True
    message = str(found)
    assert type(found) is kind, repr(found)
    assert message.isprintable(), repr(message)  # so it is one line
    assert len(message) < 1200
    assert name in message
    return False


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def spoilt_zip(content: bytes, draw: random.Random) -> bytes:
    """A zip with another value in one of its headers: names, sizes, places, methods, flags."""
    changed = bytearray(content)
    mark = draw.choice((b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"))
    place = content.rfind(mark) + 4 + draw.randrange(46)
    size = draw.choice((1, 2, 4))
    changed[place : place + size] = draw.choice((b"\xff" * size, bytes(size), draw.randbytes(size)))
    return bytes(changed)


def test_archives(tmp_path: Path) -> None:
    draw = random.Random(0)
    archives = [
        zipped({"fra.txt": TEXT}),
        zipped({"é/fra.tsv": TEXT, "é/readme.txt": b"a"}, zipfile.ZIP_STORED),
        zipped({"inner.zip": zipped({"fra.txt": TEXT})}),
        zipped({"fra.txt": gzip.compress(TEXT)}),
        zipped({"fra.txt": TEXT}, zipfile.ZIP_BZIP2),
        zipped({"fra.txt": TEXT}, zipfile.ZIP_LZMA),
        gzip.compress(TEXT) + gzip.compress(TEXT),
        TEXT,
    ]
    path, num_read = tmp_path / "given", 0
    for number in range(3000):
        content = draw.choice(archives)
        is_zip = content.startswith(b"PK") and draw.random() < 0.5
        path.write_bytes(spoilt_zip(content, draw) if is_zip else mutated(content, draw))
        num_read += is_read(lambda: unpack_text(path, tmp_path / "text", 100_000), name=str(path))
        if number % 10 == 0:  # what begins as an archive and goes on anyhow
            path.write_bytes(content[:4] + draw.randbytes(draw.randrange(300)))
            num_read += is_read(lambda: unpack_text(path, tmp_path / "text", 100_000), name=str(path))
    assert 300 < num_read < 2700


def test_pairs_of_lines(tmp_path: Path) -> None:
    draw = random.Random(1)
    path, num_read = tmp_path / "pairs.txt", 0
    for _ in range(1500):
        path.write_bytes(mutated(TEXT, draw))

        def read() -> None:
            for item in read_pairs(path, max_line_bytes=60):
                for text in item[1:]:
                    clean_text(text, "fr")

        num_read += is_read(read, name=str(path))
    assert 200 < num_read < 1300


def test_params_files(tmp_path: Path) -> None:
    draw = random.Random(2)
    path, num_read = tmp_path / "params.yaml", 0
    yaml = YAML(typ="safe", pure=True)
    whole = yaml.load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    text = "\n".join(
        line.split("  #")[0] for line in (ROOT / "params.yaml").read_text(encoding="utf-8").splitlines()
    ).encode()
    tokens = (
        *(
            "a",
            "model",
            "d_model",
            ": ",
            ":",
            "- ",
            "\n",
            "\n  ",
            "\t",
            "[",
            "]",
            "{",
            "}",
            ",",
            "&a ",
            "*a",
            "<<: ",
        ),
        *(
            "!!int ",
            "!x ",
            "%YAML 1.1\n",
            "---\n",
            "...\n",
            "|\n",
            ">-\n",
            "? ",
            "'",
            '"',
            "#",
            "\\",
            "é",
            "\u2028",
        ),
        *(
            "1",
            "1e3",
            "0x",
            ".nan",
            "~",
            "yes",
            "2024-01-01",
            "9" * 30,
            "\x00",
            "\x85",
            "\ud800",
            "\U0001f600",
        ),
    )

    for number in range(2400):
        match number % 12:
            case 0:
                path.write_bytes(mutated(text, draw))
            case 1:
                path.write_text(json.dumps(changed_value(whole, draw), ensure_ascii=draw.random() < 0.5))
            case _:
                words = "".join(draw.choices(tokens, k=draw.randrange(1, 40)))
                path.write_bytes(words.encode("utf-8", "surrogatepass"))
        try:
            load_params(FetchParams, path)
        except ParamsError as error:
            faults = str(error).split("\n")
        else:
            num_read += 1
            continue
        for line in faults:
            assert line.startswith(str(path))
            assert line.isprintable(), repr(line)
            assert len(line) < 700
    assert 10 < num_read < 600


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("small"))


def test_checkpoints(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    draw = random.Random(3)
    tensors = {"model.w": torch.arange(35.0).view(5, 7), "optimizer.w": torch.tensor(7.0)}
    folder = tmp_path / "step-0000007"
    folder.mkdir()
    write_checkpoint(folder, tensors, {"step": 7})
    good = {path.name: path.read_bytes() for path in folder.iterdir()}
    num_read = 0
    for number in range(1500):
        name = draw.choice(sorted(good))
        for other, content in good.items():
            (folder / other).write_bytes(content)
        if name.endswith(".json") and draw.random() < 0.5:
            spoilt = json.dumps(changed_value(json.loads(good[name]), draw)).encode()
        else:
            spoilt = mutated(good[name], draw)
        (folder / name).write_bytes(spoilt)
        if number % 3 and name != "manifest.json":
            manifest = json.loads(good["manifest.json"])
            manifest[name] = {"bytes": len(spoilt), "sha256": sha256_of_file(folder / name)}
            (folder / "manifest.json").write_text(json.dumps(manifest))
        num_read += is_read(lambda: read_checkpoint(folder), DamagedCheckpoint, name=str(folder))
        latest_checkpoint(tmp_path)
    assert 50 < num_read < 1200


def copy_with(small: Path, folder: Path, name: str, content: bytes) -> None:
    """The model with another file in it, and the hashes of that."""
    (folder / name).write_bytes(content)
    config = json.loads((small / "config.json").read_bytes())
    config["sha256"] = {one: sha256_of_file(folder / one) for one in FILES}
    (folder / "config.json").write_text(json.dumps(config))


def test_model_folders(small: Path, tmp_path: Path) -> None:
    draw = random.Random(4)
    folder = tmp_path / "model"
    good = {path.name: path.read_bytes() for path in small.iterdir()}
    num_read = 0
    for number in range(500):
        shutil.copytree(small, folder, dirs_exist_ok=True)
        name = ("config.json", "weights.safetensors", "training_sentences.safetensors")[number % 3]
        if name == "config.json":
            spoilt = mutated(good[name], draw)
            if draw.random() < 0.7:
                spoilt = json.dumps(changed_value(json.loads(good[name]), draw)).encode()
            (folder / name).write_bytes(spoilt)
        else:
            header = 8 + int.from_bytes(good[name][:8], "little")  # the rest are numbers
            spoilt = mutated(good[name][:header], draw) + good[name][header:]
            copy_with(small, folder, name, mutated(good[name], draw) if draw.random() < 0.2 else spoilt)

        def load() -> None:
            load_model(folder)
            training_sentences(folder)

        num_read += is_read(load, name=str(folder))
    assert 20 < num_read < 400


def test_models_of_any_shape(small: Path, tmp_path: Path) -> None:
    draw = random.Random(5)
    shutil.copytree(small, tmp_path / "model")
    shapes = ((), (0,), (1,), (24,), (24, 24), (300, 24), (2, 3, 4))
    types = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
    names = sorted(load_model(small).model.state_dict())
    for _ in range(100):
        chosen = draw.sample([*names, "x", "", "a\nb"], draw.randrange(0, 9))
        weights = {name: torch.zeros(draw.choice(shapes), dtype=draw.choice(types)) for name in chosen}
        copy_with(small, tmp_path / "model", "weights.safetensors", save(weights))
        assert not is_read(lambda: load_model(tmp_path / "model"), name="weights.safetensors")


@pytest.mark.parametrize("kind", ["unigram", "bpe", "word"])
def test_tokenizers(kind: Any, tmp_path: Path) -> None:
    draw = random.Random(6)
    table = pa.table({"source": SOURCES, "target": (TARGETS * 2)[: len(SOURCES)]})
    pq.write_table(table, tmp_path / "train.parquet")
    train_tokenizer(tmp_path / "train.parquet", tmp_path / "t", TokenizerConfig(kind=kind, vocab_size=300))
    model = (tmp_path / "t/tokenizer.model").read_bytes()
    num_read = 0
    for _ in range(700):
        spoilt = draw.randbytes(draw.randrange(300)) if draw.random() < 0.1 else mutated(model, draw)
        if kind == "word" and draw.random() < 0.5:
            spoilt = json.dumps(changed_value(json.loads(model), draw)).encode()
        (tmp_path / "tokenizer.model").write_bytes(spoilt)

        def use() -> None:
            tokenizer = load_tokenizer(tmp_path / "tokenizer.model")
            ids = tokenizer.encode("We see a boat. 😀 ▁ \x00\n x")
            assert all(0 <= index < tokenizer.vocab_size for index in ids)
            tokenizer.decode(ids)
            tokenizer.decode(range(tokenizer.vocab_size))

        num_read += is_read(use, name="tokenizer.model")
    assert 20 < num_read < 600


def test_shards(small: Path, tmp_path: Path) -> None:
    draw = random.Random(7)
    folder = tmp_path / "shards"
    write_shards(
        small.parent / "train.parquet", folder, load_tokenizer(small), ShardsConfig(shard_bytes=1500)
    )
    good = {path.name: path.read_bytes() for path in folder.iterdir()}
    num_read = 0
    for number in range(1600):
        for other, content in good.items():
            (folder / other).write_bytes(content)
        manifest = json.loads(good[MANIFEST_NAME])
        if number % 2:
            spoilt = mutated(good[MANIFEST_NAME], draw)
            if draw.random() < 0.7:
                spoilt = json.dumps(changed_value(manifest, draw)).encode()
            (folder / MANIFEST_NAME).write_bytes(spoilt)
        else:
            shard = manifest["shards"][0]
            (folder / shard["file"]).write_bytes(mutated(good[shard["file"]], draw))
            shard["bytes"] = (folder / shard["file"]).stat().st_size
            shard["sha256"] = sha256_of_file(folder / shard["file"])
            (folder / MANIFEST_NAME).write_text(json.dumps(manifest))

        def read() -> None:
            pairs = open_shards(folder)
            verify_shards(folder)
            pairs.gather(range(len(pairs)))

        num_read += is_read(read, name=str(folder))
    assert 20 < num_read < 1200


def test_lines_to_translate(tmp_path: Path) -> None:
    draw = random.Random(8)
    loaded = small_model(tmp_path)
    config = DecodingConfig(beam_size=1, max_length=3, max_source_tokens=16)
    alphabet = "ab .!?»\"'(\u200d\u0301\u2028\x00\x85\U0001f600▁。「」あ\u202e\ufdd0éА-"
    given = [mutated(b" We see a boat!  " * draw.randrange(1, 9), draw) for _ in range(300)]
    given += ["".join(draw.choices(alphabet, k=draw.randrange(1, 90))).encode() for _ in range(300)]
    lines = []
    for text in given:
        is_read(lambda text=text: lines.extend(read_lines(io.BytesIO(text), "text")), name="text, line ")
    assert len(lines) > 300
    translations = translate(loaded, lines, config)
    assert len(translations) == len(lines)
    assert all("\n" not in one.text for one in translations)
