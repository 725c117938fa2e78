"""A model folder gives back the model that was saved, of either kind, or says what is wrong with it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file as save_numpy_file
from safetensors.torch import load_file, save_file
from torch import Tensor

from passerelle.config import LanguagesConfig, ModelConfig
from passerelle.data.special import EOS
from passerelle.files import sha256_of_file
from passerelle.model_folder import load_model, save_model, training_sentences
from passerelle.models import build_model
from small_model import RECURRENT, write_small_model

SEPARATE = {"share_embeddings": False}
CONFIGS = {
    "transformer": ModelConfig(d_model=8, num_heads=2, num_layers=1, d_ff=12),
    "transformer-separate": ModelConfig(d_model=8, num_heads=2, num_layers=1, d_ff=12, **SEPARATE),
    "gru": ModelConfig(name="bahdanau", d_model=7, num_layers=2),
    "lstm-separate": ModelConfig(name="bahdanau", d_model=7, num_layers=1, cell="lstm", **SEPARATE),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder that no test changes."""
    return write_small_model(tmp_path_factory.mktemp("small"), RECURRENT)


def save(folder: Path, weights: dict[str, Tensor], small: Path, config: ModelConfig) -> None:
    languages = LanguagesConfig(source="en", target="de")
    save_model(
        folder,
        weights,
        small / "tokenizer.model",
        model=config,
        languages=languages,
        fingerprint="ab12",
        training_sentences={"source": np.array([7], np.uint64), "target": np.array([2**63 + 1], np.uint64)},
    )


def logits(model: Any) -> Tensor:
    memory = model.encode(torch.tensor([[5, 9, 280, EOS]]), torch.tensor([4]))
    return model.decode(torch.tensor([[2, 7, 11]]), memory, model.start(memory))[0]


def change(folder: Path, **content: Any) -> None:
    """Other content for config.json, with the hashes of the files as they are now."""
    config = json.loads((folder / "config.json").read_text()) | content
    config["sha256"] = {name: sha256_of_file(folder / name) for name in config["sha256"]}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("name", CONFIGS)
@torch.inference_mode()
def test_what_was_saved_is_loaded(name: str, small: Path, tmp_path: Path) -> None:
    config = CONFIGS[name]
    torch.manual_seed(1)
    model = build_model(config, load_model(small).tokenizer.vocab_size)
    save(tmp_path / "model", dict(model.named_parameters()), small, config)
    loaded = load_model(tmp_path / "model")
    assert not loaded.model.training
    assert torch.equal(logits(loaded.model), logits(model.eval()))
    assert loaded.languages == LanguagesConfig(source="en", target="de")
    assert loaded.fingerprint == "ab12"


@pytest.mark.parametrize("name", CONFIGS)
def test_every_parameter_is_needed(name: str, small: Path, tmp_path: Path) -> None:
    model = build_model(CONFIGS[name], load_model(small).tokenizer.vocab_size)
    weights = dict(model.named_parameters())
    lost = list(weights)[-1]
    del weights[lost]
    save(tmp_path / "model", weights, small, CONFIGS[name])
    with pytest.raises(ValueError, match=rf"weights.safetensors: missing \['{lost}'\], unexpected \[\]"):
        load_model(tmp_path / "model")


def copy_of(small: Path, tmp_path: Path) -> Path:
    save(tmp_path / "model", load_file(small / "weights.safetensors"), small, RECURRENT)
    return tmp_path / "model"


def test_a_parameter_of_another_model_is_refused(small: Path, tmp_path: Path) -> None:
    weights = load_file(small / "weights.safetensors")
    save(tmp_path / "model", weights | {"encoder_norm.weight": torch.ones(3)}, small, RECURRENT)
    with pytest.raises(ValueError, match=r"missing \[\], unexpected \['encoder_norm.weight'\]"):
        load_model(tmp_path / "model")


def test_weights_of_another_size_are_refused(small: Path, tmp_path: Path) -> None:
    folder = copy_of(small, tmp_path)
    change(folder, model=RECURRENT.model_dump() | {"d_model": 25})
    message = r"weights.safetensors: does not fit config.json: \S+ has shape \(.*24.*\), not \(.*25.*\)$"
    with pytest.raises(ValueError, match=message):
        load_model(folder)


def test_a_file_that_is_no_safetensors_is_refused(small: Path, tmp_path: Path) -> None:
    folder = copy_of(small, tmp_path)
    (folder / "weights.safetensors").write_bytes(b"{}" * 50_000)
    change(folder)
    with pytest.raises(
        ValueError, match=r"weights.safetensors: not a file of safetensors \(.*\); train again$"
    ):
        load_model(folder)


@pytest.mark.parametrize("name", ["weights.safetensors", "tokenizer.model"])
def test_a_damaged_or_absent_file_is_named(name: str, small: Path, tmp_path: Path) -> None:
    folder = copy_of(small, tmp_path)
    expected = sha256_of_file(folder / name)
    (folder / name).write_bytes((folder / name).read_bytes() + b"\0")
    with pytest.raises(
        ValueError, match=f"{name}: sha256 is [0-9a-f]{{64}}, but config.json expects {expected}"
    ):
        load_model(folder)
    (folder / name).unlink()
    with pytest.raises(ValueError, match=f"{name}: sha256 is no file, but config.json expects {expected}"):
        load_model(folder)


def test_another_format_is_refused(small: Path, tmp_path: Path) -> None:
    folder = copy_of(small, tmp_path)
    change(folder, format=9)
    with pytest.raises(ValueError, match=r"config.json: format 9, but this version reads 2; train again"):
        load_model(folder)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path}: not a model folder (no config.json)")):
        load_model(tmp_path)


def set_weights(folder: Path, **changed: Tensor) -> None:
    """Other weights in the folder, and the hashes of its files as they are then."""
    save_file(load_file(folder / "weights.safetensors") | changed, folder / "weights.safetensors")
    change(folder)


@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
def test_a_weight_that_is_not_finite_is_refused(value: float, small: Path, tmp_path: Path) -> None:
    folder = copy_of(small, tmp_path)
    name, tensor = next(iter(load_file(folder / "weights.safetensors").items()))
    tensor.view(-1)[-1] = value
    set_weights(folder, **{name: tensor})
    with pytest.raises(
        ValueError, match=rf"weights.safetensors: {name} is not all finite numbers in 32 bits"
    ):
        load_model(folder)


def test_weights_of_another_type_are_refused(small: Path, tmp_path: Path) -> None:
    folder = copy_of(small, tmp_path)
    name, tensor = next(iter(load_file(folder / "weights.safetensors").items()))
    set_weights(folder, **{name: tensor.double()})
    with pytest.raises(
        ValueError, match=rf"weights.safetensors: {name} is not all finite numbers in 32 bits"
    ):
        load_model(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model": {"d_model": 25, "num_heads": 2}},
            r"model: num_heads must divide d_model=25, but is 2; train again",
        ),
        (
            {"model": {"num_layers": 10**9}},
            r"model\.num_layers: input should be less than or equal to 1000, but is",
        ),
        ({"model": {"heads": 2}}, r"model\.heads: unknown key; did you mean num_heads\?; train again"),
        (
            {"model": None},
            r"model: input should be a section, with its keys below it, but is null; train again",
        ),
        (
            {"languages": {"source": "english"}},
            r"languages\.source: input should be an ISO 639 code .*'english'",
        ),
        ({"fingerprint": ["a\nb"]}, r"fingerprint: input should be a valid string, but is \['a\\nb'\]"),
        ({"more": 1}, r"more: unknown key; "),
        ({"format": {"a": 2}}, r"format \{'a': 2\}, but this version reads 2"),
    ],
)
def test_a_configuration_with_a_fault_is_refused(
    changes: dict[str, Any], message: str, small: Path, tmp_path: Path
) -> None:
    folder = copy_of(small, tmp_path)
    change(folder, **changes)
    with pytest.raises(ValueError, match=rf"config\.json: {message}") as refused:
        load_model(folder)
    assert "\n" not in str(refused.value)


def test_the_hashes_must_be_those_of_the_folders_files(small: Path, tmp_path: Path) -> None:
    folder = copy_of(small, tmp_path)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"sha256": {"weights.safetensors": "a" * 64}}))
    with pytest.raises(
        ValueError, match=r"config\.json: sha256 lacks tokenizer.model, training_sentences.safetens"
    ):
        load_model(folder)
    path.write_text(json.dumps(config | {"sha256": config["sha256"] | {"/dev/zero": "a" * 64}}))
    with pytest.raises(
        ValueError, match=r"config\.json: sha256\./dev/zero\.\[key\]: input should be 'weights"
    ):
        load_model(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1]", r"format null, but this version reads 2"),
        (b"{", r"not valid JSON \(.*\); train again"),
        (b"\xff", r"not valid JSON \(.*\); train again"),
        (b"[" * 99_999, r"not valid JSON \(.*\); train again"),
        (b" " * 100_001, r"over 100000 bytes, so not what stage `train` writes; train again"),
    ],
)
def test_what_is_no_configuration_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=rf"config\.json: {message}") as refused:
        load_model(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("changes", [{"d_model": 1_000_000}, {"num_layers": 1000}])
def test_a_model_larger_than_its_weights_is_not_built(
    changes: dict[str, int], small: Path, tmp_path: Path
) -> None:
    folder = copy_of(small, tmp_path)
    change(folder, model=RECURRENT.model_dump() | changes)
    with pytest.raises(
        ValueError, match=r"weights.safetensors: \d+ bytes, but weights that fit config.json are over"
    ):
        load_model(folder)


def test_weights_of_another_depth_are_refused(small: Path, tmp_path: Path) -> None:
    folder = copy_of(small, tmp_path)
    change(folder, model=RECURRENT.model_dump() | {"num_layers": 3})
    with pytest.raises(
        ValueError, match=r"weights.safetensors: missing \['decoder\.2\..*\], unexpected \[\]$"
    ):
        load_model(folder)


@pytest.mark.parametrize(
    "content",
    [
        {"source": np.zeros(3, np.uint64)},
        {"source": np.zeros(3, np.uint64), "target": np.zeros(3, np.float32)},
        {"source": np.zeros(3, np.uint64), "target": np.zeros((3, 1), np.uint64)},
    ],
)
def test_sentences_in_another_form_are_refused(content: dict[str, Any], tmp_path: Path) -> None:
    save_numpy_file(content, tmp_path / "training_sentences.safetensors")
    with pytest.raises(
        ValueError, match=r"training_sentences.safetensors: has .*, not the hashes of source and"
    ):
        training_sentences(tmp_path)
