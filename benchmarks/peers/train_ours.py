"""Training speed of this project: its training step on its own data, with model and training of params.yaml.

    python benchmarks/peers/train_ours.py --shards data/shards/train --workers 2 --optimizer muon

Reads shards, plans and makes batches as the stage `train` does, all within the time measured. The workers share
--threads between them and exchange gradients over gloo.
"""

import argparse
import json
import math
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing as multiprocessing
from numpy.typing import NDArray
from torch import distributed
from workload import (
    D_FF,
    D_MODEL,
    DROPOUT,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    NUM_HEADS,
    NUM_LAYERS,
    VOCAB_SIZE,
    WARM_UP_SECONDS,
    WARM_UP_STEPS,
)

from passerelle.config import ModelConfig, TrainingConfig, TrainParams
from passerelle.data.pairs import SentencePairs, open_shards
from passerelle.models import Model, build_model
from passerelle.params_file import load_params
from passerelle.training.batches import planned_steps, step_batches
from passerelle.training.group import ALONE, Group
from passerelle.training.job import COMPUTING
from passerelle.training.master import copy_to_model, make_master
from passerelle.training.precision import compute_dtype
from passerelle.training.step import train_step

ROOT = Path(__file__).resolve().parents[2]


def configuration(optimizer: str, batch_tokens: int) -> tuple[ModelConfig, TrainingConfig]:
    """params.yaml with the sizes that all systems have; a step of two micro-batches, batch_tokens in both."""
    params = load_params(TrainParams, ROOT / "params.yaml")
    model = {
        "d_model": D_MODEL,
        "num_heads": NUM_HEADS,
        "num_layers": NUM_LAYERS,
        "d_ff": D_FF,
        "dropout": DROPOUT,
    }
    training = {
        "optimizer": optimizer,
        "micro_batch_tokens": batch_tokens // 2,
        "micro_batches_per_step": 2,
        "label_smoothing": LABEL_SMOOTHING,
    }
    return params.model.model_copy(update=model), params.training.model_copy(update=training)


def matmul_flops(source: NDArray[np.int64], target: NDArray[np.int64]) -> float:
    """Floating-point operations of the matrix products that training on these sentences needs, padding left out.

    source, target: lengths of the sentences, end of sentence counted. A multiplication and an addition are two;
    the backward pass has twice the products of the forward pass. Attention is counted over all T x T scores.
    """
    matrix, layers = D_MODEL**2, NUM_LAYERS
    feed_forward = 4 * D_MODEL * D_FF
    encoder = layers * (8 * matrix + feed_forward) * source.sum()
    decoder = layers * (12 * matrix + feed_forward) * target.sum()
    memory = layers * 4 * matrix * source.sum()  # keys and values of the attention over the source
    attention = layers * 4 * D_MODEL * (source**2 + target**2 + source * target).sum()
    output = 2 * D_MODEL * VOCAB_SIZE * target.sum()
    return 3.0 * float(encoder + decoder + memory + attention + output)


def flops_of_step(pairs: SentencePairs, micro_batches: list[NDArray[np.int64]]) -> float:
    """Of one optimiser step, over all workers."""
    rows = np.concatenate(micro_batches)
    source, target = (
        lengths[rows].astype(np.int64) + 1 for lengths in (pairs.source_lengths, pairs.target_lengths)
    )
    return matmul_flops(source, target)


def worker(rank: int, folder: str, arguments: argparse.Namespace) -> None:
    """One of the processes that train together; the first writes what it measured."""
    num_workers = arguments.workers
    os.environ.update(COMPUTING)
    torch.set_num_threads(arguments.threads // num_workers)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=num_workers
    )
    group = Group(rank, num_workers, distributed.all_reduce if num_workers > 1 else ALONE.reduce)
    model_config, config = configuration(arguments.optimizer, arguments.batch_tokens)
    torch.manual_seed(0)
    model = build_model(model_config, VOCAB_SIZE)
    measured = train(model, config, open_shards(arguments.shards), group, arguments.seconds)
    if rank == 0:
        measured["parameters"] = sum(parameter.numel() for parameter in model.parameters())
        (Path(folder) / "measured.json").write_text(json.dumps(measured), encoding="utf-8")
    distributed.destroy_process_group()


def train(
    model: Model, config: TrainingConfig, pairs: SentencePairs, group: Group, seconds: float
) -> dict[str, float]:
    """Train for so many seconds after a warm-up; tokens and operations are those of all workers."""
    device = torch.device("cpu")
    master = make_master(model, config)
    model.to(compute_dtype(config.precision, device))
    copy_to_model(master, model)
    num_tokens, flops, began, first = 0, 0.0, math.inf, time.perf_counter()
    for step, micro_batches in enumerate(planned_steps(pairs, config)):
        now = time.perf_counter()
        if began == math.inf and step >= WARM_UP_STEPS and now - first >= WARM_UP_SECONDS:
            num_tokens, flops, began = 0, 0.0, now
        result = train_step(
            model,
            master,
            step_batches(pairs, micro_batches, device, group),
            step=step,
            rate=LEARNING_RATE,
            config=config,
            group=group,
            wants_stop=now - began >= seconds,
        )
        num_tokens += result.num_tokens
        flops += flops_of_step(pairs, micro_batches)
        if result.is_stop_wanted:
            return {
                "tokens": num_tokens,
                "seconds": round(time.perf_counter() - began, 3),
                "flops": flops,
            }
    raise AssertionError("the plan has an end")


def main() -> None:
    """Train, and print the measurement as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shards", type=Path, default=ROOT / "data/shards/train")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--optimizer", choices=["adam", "muon"], default="muon")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="padded tokens of an optimiser step")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(worker, args=(folder, arguments), nprocs=arguments.workers)
        print((Path(folder) / "measured.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
