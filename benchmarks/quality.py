"""Whether bfloat16 and our dropout cost quality: validation loss against float32 with torch's dropout.

    python benchmarks/quality.py [--seeds 3] [--steps 400] [--output benchmarks/results/quality.json]

Both train a small Transformer (128 wide, 2 + 2 layers) on the same batches, one micro-batch a step, from the same
initial weights, all else as in params.yaml; dropout masks differ, so single pairs of runs do too. The trained
weights, which are float32, are judged in float32, by negative log-likelihood a target token of the validation set.
No timing: runs go side by side, one thread each.
Fails where the mean over seeds is more than 0.5 % above.
"""

import argparse
import json
import statistics
import sys
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import nn

from passerelle.config import TrainingConfig, TrainParams
from passerelle.data.pairs import open_shards
from passerelle.identity import identity
from passerelle.models import build_model
from passerelle.nn.dropout import Dropout
from passerelle.params_file import load_params
from passerelle.training.batches import planned_steps, step_batches, validation_batches
from passerelle.training.group import ALONE
from passerelle.training.master import copy_to_model, make_master
from passerelle.training.schedule import learning_rate
from passerelle.training.step import train_step, validation_loss

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"d_model": 128, "num_heads": 4, "num_layers": 2, "d_ff": 512}
PLAIN, OURS = "float32, torch's dropout", "bfloat16, our dropout"
LIMIT = 0.005
"""Largest relative difference of the mean loss."""
CPU = torch.device("cpu")


def with_torchs_dropout(model: nn.Module) -> nn.Module:
    """The same model, every dropout in it exchanged for torch's."""
    replaced = [
        (parent, name, child.rate)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, Dropout)
    ]
    assert replaced
    for parent, name, rate in replaced:
        setattr(parent, name, nn.Dropout(rate))
    return model


def trained_loss(setting: str, seed: int, num_steps: int, shards: str) -> float:
    """Validation loss after num_steps, in nats a target token."""
    torch.set_num_threads(1)
    params = load_params(TrainParams)
    changes = {
        "seed": seed,
        "micro_batches_per_step": 1,
        "max_steps": num_steps,
        "warmup_steps": num_steps // 4,
    }
    config: TrainingConfig = params.training.model_copy(update=changes)
    pairs = open_shards(Path(shards) / "train")
    torch.manual_seed(seed)
    model: nn.Module = build_model(params.model.model_copy(update=SIZES), pairs.manifest["vocab_size"])
    master = make_master(model, config)
    if setting == OURS:
        model.to(torch.bfloat16)
    else:
        with_torchs_dropout(model)
    copy_to_model(master, model)
    steps = planned_steps(pairs, config)
    for step in range(num_steps):
        result = train_step(
            model,
            master,
            step_batches(pairs, next(steps), CPU, ALONE),
            step=step,
            rate=learning_rate(step, config),
            config=config,
            group=ALONE,
        )
        assert not result.is_skipped
    copy_to_model(master, model.float())
    valid = open_shards(Path(shards) / "valid")
    return validation_loss(model, validation_batches(valid, config, CPU, ALONE), ALONE, CPU)


def main() -> None:
    """Print the losses as they come, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shards", default="data/shards")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/quality.json")
    arguments = parser.parse_args()
    runs = list(product(range(arguments.seeds), (PLAIN, OURS)))
    losses: dict[str, list[float]] = {PLAIN: [], OURS: []}
    with get_context("spawn").Pool(arguments.processes) as pool:
        waiting = [
            pool.apply_async(trained_loss, (setting, seed, arguments.steps, arguments.shards))
            for seed, setting in runs
        ]
        for (seed, setting), run in zip(runs, waiting, strict=True):
            losses[setting].append(run.get())
            print(f"seed {seed}: {setting}: {losses[setting][-1]:.4f}", file=sys.stderr)
    differences = [ours / plain - 1.0 for plain, ours in zip(*losses.values(), strict=True)]
    tags = identity(ROOT)
    result: dict[str, Any] = {
        "machine": {key: tags[key] for key in tags if key.startswith(("machine.", "version.torch", "git."))},
        "steps": arguments.steps,
        "validation loss by seed": losses,
        "mean": {setting: statistics.fmean(of_setting) for setting, of_setting in losses.items()},
        "relative difference by seed": differences,
        "mean relative difference": statistics.fmean(differences),
        "standard deviation of the differences": statistics.stdev(differences)
        if len(differences) > 1
        else None,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    if result["mean relative difference"] > LIMIT:
        sys.exit(f"error: the mean loss is over {LIMIT:.1%} above that of {PLAIN}")


if __name__ == "__main__":
    main()
