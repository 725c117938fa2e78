"""The form of training's state in a checkpoint, and what is none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from passerelle.config import LanguagesConfig, ModelConfig, TrainParams
from passerelle.training.checkpoint import (
    DamagedCheckpoint,
    checkpoint_name,
    latest_checkpoint,
    read_checkpoint,
    save_checkpoint,
    write_checkpoint,
)
from passerelle.training.master import make_master, master_tensors
from passerelle.training.state import checker, restore
from tiny import VOCAB_SIZE, run, sign, tiny_config, tiny_model

MODEL = ModelConfig(d_model=12, num_heads=3, num_layers=1, d_ff=20)
CONFIG = tiny_config(optimizer="muon")
PARAMS = TrainParams(languages=LanguagesConfig(), model=MODEL, training=CONFIG)

Facts = dict[str, Any]
Tensors = dict[str, Tensor]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tensors, Facts]:
    """What a checkpoint holds after four steps."""
    folder = tmp_path_factory.mktemp("saved")
    run(CONFIG, folder, stop_after=4)
    return read_checkpoint(folder / "4")


def without(name: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {key: tensor for key, tensor in tensors.items() if key != name}


def changed(**changes: Any) -> Callable[[Facts], Facts]:
    return lambda facts: {**facts, **changes}


def save(run_folder: Path, tensors: Tensors, facts: Facts, step: int = 4) -> Path:
    return save_checkpoint(run_folder, step, lambda folder: write_checkpoint(folder, tensors, facts))


def test_a_checkpoint_fits_the_run_that_wrote_it(tmp_path: Path, saved: tuple[Tensors, Facts]) -> None:
    folder = save(tmp_path, *saved)
    checker(PARAMS, VOCAB_SIZE)(folder)
    master = make_master(tiny_model(), CONFIG)
    restore(folder, master)
    for name, tensor in master_tensors(master).items():
        assert torch.equal(tensor, saved[0][name])


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_what_is_expected_is_known_without_memory(name: Any, optimizer: Any, tmp_path: Path) -> None:
    """The check builds the model without memory for it; it expects what a real one holds."""
    config = tiny_config(optimizer=optimizer)
    model = ModelConfig(name=name, d_model=12, num_heads=3, num_layers=1, d_ff=20)
    run(config, tmp_path, name=name, stop_after=1)
    (tmp_path / "1").rename(tmp_path / checkpoint_name(1))
    params = TrainParams(languages=LanguagesConfig(), model=model, training=config)
    state = torch.get_rng_state()
    checker(params, VOCAB_SIZE)(tmp_path / checkpoint_name(1))
    assert torch.equal(torch.get_rng_state(), state)  # nor does it draw numbers that training would draw


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            without("model.encoder_norm.weight"),
            r"tensor model.encoder_norm.weight is missing, but this run's is",
        ),
        (
            without("optimizer.step.encoder_norm.weight"),
            r"tensor optimizer.step.encoder_norm.weight is missing",
        ),
        (
            lambda tensors: tensors | {"model.more": torch.zeros(3)},
            r"model.more is .*'F32', \(3,\).*'s is none",
        ),
        (lambda tensors: {}, r"is missing, but this run's is \('F32', \("),
        (
            lambda tensors: tensors | {"model.encoder_norm.weight": torch.zeros(5)},
            r"encoder_norm.weight is \('F32', \(5,\)\), but this run's is \('F32', \(12,\)\)",
        ),
        (
            lambda tensors: tensors | {"model.encoder_norm.weight": torch.zeros(12).double()},
            r"encoder_norm.weight is \('F64', \(12,\)\), but this run's is \('F32', \(12,\)\)",
        ),
    ],
)
def test_tensors_of_another_run_are_no_state(
    tmp_path: Path, saved: tuple[Tensors, Facts], change: Callable[[Tensors], Tensors], match: str
) -> None:
    tensors, facts = saved
    good = save(tmp_path, tensors, facts | {"step": 3}, step=3)
    folder = save(tmp_path, change(tensors), facts)
    master = make_master(tiny_model(), CONFIG)
    before = {name: tensor.clone() for name, tensor in master_tensors(master).items()}
    for use in (lambda folder: restore(folder, master), checker(PARAMS, VOCAB_SIZE)):
        with pytest.raises(DamagedCheckpoint, match=f"step-0000004/state.safetensors: .*{match}"):
            use(folder)
    assert all(torch.equal(tensor, before[name]) for name, tensor in master_tensors(master).items())
    assert latest_checkpoint(tmp_path, checker(PARAMS, VOCAB_SIZE)) == good


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda facts: {}, r"step: Field required"),
        (
            lambda facts: {key: facts[key] for key in facts if key != "since_row"},
            r"since_row: Field required",
        ),
        (changed(more=1), r"more: Extra inputs are not permitted"),
        (changed(step="4"), r"step: Input should be a valid integer"),
        (changed(step=-4), r"step: Input should be greater than or equal to 0"),
        (changed(num_tokens=0.5), r"num_tokens: Input should be a valid integer"),
        (changed(best_valid_loss=True), r"best_valid_loss: Input should be a valid number"),
        (changed(history=None), r"history: Input should be a valid list"),
        (changed(history=[{"step": 3, "loss": "3"}]), r"history.0.loss"),
        (changed(history=[{"loss": 3.0}]), r"the steps of the history do not rise to the last step"),
        (changed(history=[{"step": 3}, {"step": 3}]), r"the steps of the history do not rise"),
        (changed(history=[{"step": 5}]), r"the steps of the history do not rise"),
        (changed(since_row={}), r"since_row.negative_log_likelihood: Field required"),
    ],
)
def test_facts_of_another_form_are_no_state(
    tmp_path: Path, saved: tuple[Tensors, Facts], change: Callable[[Facts], Facts], match: str
) -> None:
    tensors, facts = saved
    good = save(tmp_path, tensors, facts | {"step": 3}, step=3)
    folder = save(tmp_path, tensors, change(facts))
    for use in (
        lambda folder: restore(folder, make_master(tiny_model(), CONFIG)),
        checker(PARAMS, VOCAB_SIZE),
    ):
        with pytest.raises(
            DamagedCheckpoint, match=f"step-0000004/facts.json: not the facts of training .*{match}"
        ):
            use(folder)
    assert latest_checkpoint(tmp_path, checker(PARAMS, VOCAB_SIZE)) == good


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize(("key", "place"), [("seconds", "seconds"), ("history", "history.0.loss")])
def test_facts_without_finite_numbers_are_no_state(
    tmp_path: Path, saved: tuple[Tensors, Facts], word: str, key: str, place: str
) -> None:
    """Python's reader of JSON takes them."""
    tensors, facts = saved
    value = 1.25 if key == "seconds" else [{"step": 3, "loss": 1.25}]
    folder = save(tmp_path, tensors, facts | {key: value})
    text = (folder / "facts.json").read_text()
    (folder / "facts.json").write_text(text.replace("1.25", word))
    sign(folder)
    with pytest.raises(DamagedCheckpoint, match=rf"facts.json: not the facts of training \({place}"):
        checker(PARAMS, VOCAB_SIZE)(folder)


def test_a_renamed_checkpoint_is_found(tmp_path: Path, saved: tuple[Tensors, Facts]) -> None:
    folder = save(tmp_path, *saved, step=5)
    with pytest.raises(
        DamagedCheckpoint, match=r"step-0000005/facts.json: of step 4, but the folder is named"
    ):
        checker(PARAMS, VOCAB_SIZE)(folder)
