"""The optimiser step against plain torch on one big batch, and what must not change it."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from passerelle.data.batch import Batch
from passerelle.training.batches import load_batch
from passerelle.training.group import ALONE, Group
from passerelle.training.master import copy_to_model, make_master, master_tensors
from passerelle.training.step import StepResult, dropout_seed, train_step, validation_loss
from tiny import Name, spoilt_steps, tiny_config, tiny_model, tiny_pairs

PAIRS = tiny_pairs(60, seed=3)
CPU = torch.device("cpu")


def batches(*parts: range) -> list[tuple[int, Batch]]:
    return [(number, load_batch(PAIRS, np.array(part), CPU)) for number, part in enumerate(parts)]


def step(
    parts: list[tuple[int, Batch]], dropout: float = 0.0, **changes: float | str
) -> tuple[StepResult, torch.Tensor]:
    config = tiny_config(**changes)
    model = tiny_model(dropout)
    master = make_master(model, config)
    result = train_step(model, master, parts, step=0, rate=0.01, config=config, group=ALONE)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, master.parameters[name])
    return result, torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_a_step_equals_torch_adamw_on_the_mean_loss_of_all_tokens() -> None:
    result, weights = step(batches(range(11), range(11, 40)), clip_norm=0.5, weight_decay=0.1)
    model = tiny_model(0.0).double()
    ((_, batch),) = batches(range(40))
    memory = model.encode(batch.source, batch.source_lengths)
    logits, _ = model.decode(batch.target_in, memory, model.start(memory))
    real = logits.flatten(0, 1)[batch.target_positions]
    loss = functional.cross_entropy(real, batch.target_out, label_smoothing=0.1)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.98), eps=1e-9).step()
    expected = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    assert result.loss == pytest.approx(loss.item(), rel=1e-6)
    assert result.gradient_norm == pytest.approx(norm.item(), rel=1e-5)
    assert result.num_tokens == batch.num_tokens
    # Adam divides by the gradient's size: where that is near 0, float32 decides the sign
    assert ((weights.double() - expected).abs() < 1e-5).double().mean() > 0.99


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_step_does_not_load_torchs_compiler(optimizer: str) -> None:
    """It takes seconds, in each worker; so does the constructor of any optimiser of torch."""
    code = (
        "import sys, test_step; "
        f"test_step.step(test_step.batches(range(9)), optimizer={optimizer!r}); "
        "print('torch._dynamo' in sys.modules)"
    )
    folder = Path(__file__).parent
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["False"]


def test_the_cut_into_micro_batches_does_not_change_the_step() -> None:
    whole, _ = step(batches(range(40)))
    cut, _ = step(batches(range(1), range(1, 30), range(30, 40)))
    assert cut.gradient_norm == pytest.approx(whole.gradient_norm, rel=1e-5)
    assert cut.loss == pytest.approx(whole.loss, rel=1e-6)


def test_dropout_masks_depend_on_the_number_of_the_micro_batch_and_not_on_who_runs_it() -> None:
    parts = batches(range(20), range(20, 40))
    (in_order, _), (reversed_, _) = step(parts, dropout=0.5), step(parts[::-1], dropout=0.5)
    assert reversed_.loss == pytest.approx(in_order.loss, rel=1e-6)
    renumbered, _ = step([(1 - number, batch) for number, batch in parts], dropout=0.5)
    assert renumbered.loss != pytest.approx(in_order.loss, rel=1e-3)


def test_dropout_seeds_differ_for_each_key() -> None:
    keys = [(seed, step, number) for seed in range(3) for step in range(5) for number in range(4)]
    assert len({dropout_seed(*key) for key in keys}) == len(keys)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize("spoilt_by", ["loss", "gradient"])
@pytest.mark.parametrize("num_good", [0, 2])
def test_a_step_without_finite_numbers_moves_nothing(optimizer: str, spoilt_by: str, num_good: int) -> None:
    """Neither weights nor what Adam and Muon remember, be it the first step or a later one."""
    config = tiny_config(optimizer=optimizer)
    model = tiny_model()
    master = make_master(model, config)

    def step_number(number: int, group: Group = ALONE) -> StepResult:
        parts = batches(range(9), range(9, 20))
        return train_step(model, master, parts, step=number, rate=0.1, config=config, group=group)

    for number in range(num_good):
        step_number(number)
    before = {name: tensor.clone() for name, tensor in master_tensors(master).items()}
    weights = {name: parameter.clone() for name, parameter in model.named_parameters()}

    def add_an_infinity(exchanged: torch.Tensor) -> None:
        if exchanged is master.exchanged:
            exchanged[7] = math.inf  # as from another worker

    if spoilt_by == "loss":
        with spoilt_steps({num_good + 1}):
            skipped = step_number(num_good)
        assert math.isnan(skipped.loss)
    else:
        skipped = step_number(num_good, Group(0, 2, add_an_infinity))
        assert math.isfinite(skipped.loss)
    assert skipped.is_skipped
    assert not math.isfinite(skipped.gradient_norm)
    assert master_tensors(master).keys() == before.keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in master_tensors(master).items())
    assert all(torch.equal(parameter, weights[name]) for name, parameter in model.named_parameters())
    assert not step_number(num_good + 1).is_skipped
    assert not any(torch.equal(parameter, weights[name]) for name, parameter in model.named_parameters())


@pytest.mark.parametrize(("wish", "of_others", "is_wanted"), [(0, 0, False), (1, 0, True), (0, 2, True)])
def test_all_learn_that_one_wants_to_stop(wish: int, of_others: int, is_wanted: bool) -> None:
    """Even in a step without finite numbers."""
    model, config = tiny_model(), tiny_config()
    master = make_master(model, config)

    def add_others(exchanged: torch.Tensor) -> None:
        exchanged[0] = math.nan
        exchanged[-1] += of_others

    result = train_step(
        model,
        master,
        batches(range(9)),
        step=0,
        rate=0.1,
        config=config,
        group=Group(0, 3, add_others),
        wants_stop=bool(wish),
    )
    assert result.is_stop_wanted == is_wanted


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
def test_validation_loss_is_the_mean_over_tokens_whatever_the_batches(name: Name) -> None:
    model = tiny_model(dropout=0.5, name=name)
    losses = [
        validation_loss(model, [batch for _, batch in batches(*parts)], ALONE, CPU)
        for parts in ([range(60)], [range(7), range(7, 60)])
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
def test_a_bf16_model_trains_through_its_float32_master(name: Name) -> None:
    config = tiny_config()
    model = tiny_model(0.0, name)
    master = make_master(model, config)
    model.to(torch.bfloat16)
    copy_to_model(master, model)
    losses = [
        train_step(model, master, batches(range(40)), step=step, rate=0.01, config=config, group=ALONE).loss
        for step in range(20)
    ]
    assert losses[-1] < losses[0] - 0.3
    assert all(parameter.dtype == torch.float32 for parameter in master.parameters.values())
    assert model.output.weight.dtype == torch.bfloat16
