"""What others may send runs no code here: pickles are refused wherever a file is read, and messages stay text."""

import ast
import io
import json
import pickle
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from ruamel.yaml import YAML

from passerelle.cli import main
from passerelle.commands.finding import find_translated
from passerelle.config import Params, ShardsConfig
from passerelle.corpus.archive import unpack_text
from passerelle.corpus.sentence_hashes import hashes_of_pairs
from passerelle.data.manifest import content_hash
from passerelle.data.pairs import open_shards
from passerelle.data.prepared import num_pairs
from passerelle.data.shards import write_shards
from passerelle.data.tokenizer import load_tokenizer
from passerelle.evaluation.attention_dump import FORMAT, read_attention
from passerelle.evaluation.held_out import read_held_out
from passerelle.evaluation.leaks import read_splits
from passerelle.files import sha256_of_file
from passerelle.model_folder import load_model, training_sentences
from passerelle.params_file import load_params
from passerelle.stages import printable
from passerelle.training.checkpoint import read_checkpoint, verify_checkpoint, write_checkpoint
from small_model import write_small_model
from source_imports import PACKAGE, ROOT, syntax_tree

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray, when it is imported

PICKLED_BY_RAY = "ray.data.arrow_pickled_object"
"""An Arrow extension type that Ray registers: to read a value is to load a pickle."""


@dataclass(frozen=True)
class Trap:
    """Loading its pickle makes the file `sprung`."""

    sprung: Path

    def __reduce__(self) -> Any:
        return Path.touch, (self.sprung,)


def raw(trap: Trap) -> bytes:
    return pickle.dumps(trap)


def torch_archive(trap: Trap) -> bytes:
    buffer = io.BytesIO()
    torch.save(trap, buffer)
    return buffer.getvalue()


def numpy_objects(trap: Trap) -> bytes:
    buffer = io.BytesIO()
    objects = np.empty(1, dtype=object)
    objects[0] = trap
    np.save(buffer, objects, allow_pickle=True)
    return buffer.getvalue()


@pytest.fixture(params=[raw, torch_archive, numpy_objects])
def content(request: pytest.FixtureRequest, tmp_path: Path) -> bytes:
    return request.param(Trap(tmp_path / "sprung"))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one of everything that may come from others."""
    folder = tmp_path_factory.mktemp("pristine")
    write_small_model(folder)
    table = pq.read_table(folder / "train.parquet")
    (folder / "prepared").mkdir()
    for split in ("train", "valid", "test"):
        pq.write_table(table, folder / "prepared" / f"{split}.parquet")
    write_shards(
        folder / "train.parquet", folder / "shards", load_tokenizer(folder / "tokenizer"), ShardsConfig()
    )
    (folder / "step-0000010").mkdir()
    write_checkpoint(folder / "step-0000010", {"model.weight": torch.ones(3)}, {"step": 10})
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "received"))


def write(path: Path, content: bytes) -> None:
    """Put the content at the path, with the sizes and hashes that whoever made it would have written beside it."""
    path.write_bytes(content)
    checksums = {"bytes": len(content), "sha256": sha256_of_file(path)}
    for beside in (path.with_name("manifest.json"), path.with_name("config.json")):
        if beside == path or not beside.is_file():
            continue
        listed = json.loads(beside.read_text(encoding="utf-8"))
        if "shards" in listed:
            listed["shards"] = [{**listed["shards"][0], **checksums}]
            listed["content_sha256"] = content_hash([checksums["sha256"]])
        elif path.name in listed:
            listed[path.name] = checksums
        elif path.name in listed.get("sha256", {}):
            listed["sha256"][path.name] = checksums["sha256"]
        beside.write_text(json.dumps(listed), encoding="utf-8")


PLACES: dict[str, Callable[[Path], object]] = {
    "step-0000010/state.safetensors": lambda path: read_checkpoint(path.parent),
    "step-0000010/facts.json": lambda path: read_checkpoint(path.parent),
    "step-0000010/manifest.json": lambda path: verify_checkpoint(path.parent),
    "model/weights.safetensors": lambda path: load_model(path.parent),
    "model/tokenizer.model": lambda path: load_model(path.parent),
    "model/training_sentences.safetensors": lambda path: training_sentences(path.parent),
    "model/config.json": lambda path: load_model(path.parent),
    "shards/shard-00000.arrow": lambda path: open_shards(path.parent),
    "shards/manifest.json": lambda path: open_shards(path.parent),
    "tokenizer/tokenizer.model": lambda path: load_tokenizer(path.parent),
    "prepared/train.parquet": hashes_of_pairs,
    "prepared/test.parquet": lambda path: read_held_out(path, "fr"),
    "prepared/valid.parquet": lambda path: read_splits(path.parent),
    "attention.arrow": lambda path: list(read_attention(path)),
    "params.yaml": lambda path: load_params(Params, path),
    "translations.jsonl": lambda path: find_translated(str(path), path.parent),
}


@pytest.mark.parametrize("trap", [raw, torch_archive, numpy_objects])
def test_a_trap_springs_where_its_pickle_is_loaded(trap: Callable[[Trap], bytes], tmp_path: Path) -> None:
    content = trap(Trap(tmp_path / "sprung"))
    load = {raw: pickle.load, torch_archive: lambda file: torch.load(file, weights_only=False)}
    load.get(trap, lambda file: np.load(file, allow_pickle=True))(io.BytesIO(content))
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize("place", PLACES)
def test_a_pickle_in_place_of_a_file_is_refused(
    place: str, content: bytes, folder: Path, tmp_path: Path
) -> None:
    write(folder / place, content)
    with pytest.raises(ValueError, match=re.escape(place)):
        PLACES[place](folder / place)
    assert not (tmp_path / "sprung").exists()


def test_a_pickle_in_place_of_the_corpus_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "pairs").write_bytes(content)
    is_archive = content.startswith(b"PK")
    if is_archive:
        with pytest.raises(ValueError, match="expected one text, found no"):
            unpack_text(tmp_path / "pairs", tmp_path / "text", 10**6)
    else:  # it is copied, as any text is, and then is none
        unpack_text(tmp_path / "pairs", tmp_path / "text", 10**6)
    assert not (tmp_path / "sprung").exists()


def test_a_tag_of_yaml_makes_no_object(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    path = tmp_path / "params.yaml"
    path.write_text(f"corpus: !!python/object/apply:pathlib.Path.touch [{sprung}]\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"params\.yaml"):
        load_params(Params, path)
    assert not sprung.exists()


def extension_column(trap: Trap, name: str) -> tuple[pa.Field, pa.Array]:
    """A column whose type, or each of whose values, holds the trap; as Ray or an old pyarrow would write it."""
    if name == PICKLED_BY_RAY:
        metadata, values = b"", pa.array([pickle.dumps(trap)], pa.large_binary())
    else:
        metadata, values = pickle.dumps(trap), pa.array([[1, 2]], pa.list_(pa.uint16()))
    extension = {b"ARROW:extension:name": name.encode(), b"ARROW:extension:metadata": metadata}
    return pa.field("source", values.type, metadata=extension), values


@pytest.fixture(params=[PICKLED_BY_RAY, "arrow.py_extension_type"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> pa.Table:
    import ray.data  # noqa: F401  (registers the type, as in the processes that train)

    source, values = extension_column(Trap(tmp_path / "sprung"), request.param)
    target = pa.array([[3, 4]], pa.list_(pa.uint16()))
    group = pa.array(["a"])
    fields = [
        source,
        *(pa.field(n, c.type) for n, c in (("target", target), ("references", target), ("group", group))),
    ]
    return pa.Table.from_arrays([values, target, target, group], schema=pa.schema(fields))


def test_reading_a_value_of_rays_type_springs_the_trap(tmp_path: Path) -> None:
    import ray.data  # noqa: F401

    source, values = extension_column(Trap(tmp_path / "sprung"), PICKLED_BY_RAY)
    pq.write_table(pa.Table.from_arrays([values], schema=pa.schema([source])), tmp_path / "one.parquet")
    pq.read_table(tmp_path / "one.parquet").column("source").to_pylist()
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "read",
    [
        hashes_of_pairs,
        num_pairs,
        lambda path: read_held_out(path, "fr"),
        lambda path: read_splits(path.parent),
    ],
    ids=["hashes", "pairs", "held out", "splits"],
)
def test_an_extension_type_in_parquet_is_refused(
    table: pa.Table, read: Callable[[Path], object], tmp_path: Path
) -> None:
    pq.write_table(table, tmp_path / "train.parquet")
    refusal = r"train\.parquet: column 'source' is of type .*, but only text, numbers and lists are read"
    with pytest.raises(ValueError, match=refusal):
        read(tmp_path / "train.parquet")
    assert not (tmp_path / "sprung").exists()


def test_an_extension_type_in_a_shard_is_refused(table: pa.Table, folder: Path, tmp_path: Path) -> None:
    manifest = json.loads((folder / "shards/manifest.json").read_text(encoding="utf-8"))
    metadata = {
        "schema_version": str(manifest["schema_version"]),
        "tokenizer_sha256": manifest["tokenizer_sha256"],
    }
    shard = table.select(["source", "target"]).replace_schema_metadata(metadata)
    buffer = io.BytesIO()
    with pa.ipc.new_file(buffer, shard.schema) as writer:
        writer.write_table(shard)
    write(folder / "shards/shard-00000.arrow", buffer.getvalue())
    refusal = r"shard-00000\.arrow: column 'source' is of type .*, but only text, numbers and lists are read"
    with pytest.raises(ValueError, match=refusal):
        open_shards(folder / "shards")
    assert not (tmp_path / "sprung").exists()


def test_an_extension_type_in_dumped_attention_is_refused(table: pa.Table, tmp_path: Path) -> None:
    dump = table.replace_schema_metadata({"format": FORMAT})
    with (
        pa.OSFile(str(tmp_path / "attention.arrow"), "wb") as file,
        pa.ipc.new_file(file, dump.schema) as writer,
    ):
        writer.write_table(dump)
    with pytest.raises(ValueError, match=r"attention\.arrow: column 'source' is of type .*; evaluate again"):
        list(read_attention(tmp_path / "attention.arrow"))
    assert not (tmp_path / "sprung").exists()


LOADERS = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "diskcache"}
"""Modules that none of our files imports."""
CALLS = {
    "eval": "runs text",
    "exec": "runs text",
    "compile": "makes code of text",
    "__import__": "imports by a name in data",
    "torch.load": "may unpickle; safetensors does not",
    "torch.hub.load": "downloads code",
    "np.load": "may unpickle; Arrow and safetensors do not",
    "os.system": "a shell reads its argument",
    "os.popen": "a shell reads its argument",
    "pq.read_table": "open_parquet refuses types that run code",
    "pq.ParquetFile": "open_parquet refuses types that run code",
    "importlib.import_module": "imports by a name in data",
    "runpy.run_path": "runs a file",
    "ray.cloudpickle.loads": "unpickles",
}
ALLOWED_CALLS = {("parquet.py", "pq.ParquetFile")}  # the one place that checks before it reads
SAFE_YAML = "YAML(typ='safe', pure=True)"
OTHER_YAML = {"replay.py": "writes the parameters of a recorded run back; round trips make no objects either"}


def our_files() -> list[Path]:
    """Of the library, the stages and the examples."""
    return [
        path for top in (PACKAGE, ROOT / "pipeline", ROOT / "examples") for path in sorted(top.rglob("*.py"))
    ]


def calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(syntax_tree(path)) if isinstance(node, ast.Call)]


@pytest.mark.parametrize("path", our_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_of_ours_loads_pickles_or_runs_text(path: Path) -> None:
    tree = ast.walk(syntax_tree(path))
    names = [name for node in tree for name in _imported(node)]
    assert not {name.partition(".")[0] for name in names} & LOADERS
    found = {ast.unparse(call.func) for call in calls(path)} & set(CALLS)
    assert {(path.name, call) for call in found} <= ALLOWED_CALLS, {call: CALLS[call] for call in found}
    for call in calls(path):
        options = {word.arg: ast.unparse(word.value) for word in call.keywords}
        assert options.get("shell", "False") == "False", "a shell reads the command"
        assert options.get("allow_pickle", "False") == "False"
        if ast.unparse(call.func) == "YAML" and path.name not in OTHER_YAML:
            assert ast.unparse(call) == SAFE_YAML


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


ESCAPES = "\x1b]0;taken\x07\x1b[2J\x9b31m\r\u202e"


def test_control_characters_are_shown_and_not_sent() -> None:
    assert printable(f"Où ?\u202f«\u00a0Là\u00a0»\t\n{ESCAPES}") == (
        "Où ?\u202f«\u00a0Là\u00a0»\t\n\\x1b]0;taken\\x07\\x1b[2J\\x9b31m\\r\\u202e"
    )


def is_safe(text: str) -> bool:
    return not set(text) & set(ESCAPES) - set("0123;]abcdefghijklmnopqrstuvwxyz[JK")


def test_a_message_sends_no_escapes_to_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["translate", "--model", f"absent{ESCAPES}"],
        ["compare", f"absent{ESCAPES}", "absent"],
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert "absent\\x1b]0;taken" in str(stopped.value)
        assert is_safe(str(stopped.value))


def test_compared_translations_send_no_escapes_to_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, hypothesis in (("a", f"Va !{ESCAPES}"), ("b", "Pars !")):
        row = {
            "source": f"Go.{ESCAPES}",
            "hypothesis": hypothesis,
            "references": [f"Va{ESCAPES}"],
            "group": "go",
        }
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    main(["compare", "a.jsonl", "b.jsonl"])
    output = capfd.readouterr().out
    assert "source     Go.\\x1b]0;taken" in output
    assert is_safe(output)


def test_containers_are_published_on_this_machine_alone_and_have_no_privileges() -> None:
    services = read_compose()["services"]
    assert set(services) == {"head", "worker", "mlflow"}
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        assert "privileged" not in service, name
        assert "RAY_AUTH_TOKEN" not in service["environment"], name
    assert all(services[name]["secrets"] == ["ray_token"] for name in ("head", "worker"))
    assert services["mlflow"]["command"][4] == "--allowed-hosts=mlflow:*,localhost:*,127.0.0.1:*"
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"(?m)^USER \$\{USER_ID\}$", dockerfile)


def read_compose() -> dict[str, Any]:
    return dict(YAML(typ="safe", pure=True).load((ROOT / "docker/compose.yaml").read_text(encoding="utf-8")))
