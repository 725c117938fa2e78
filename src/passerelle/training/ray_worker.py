"""What each worker of a training run does, as Ray runs it.

Worker 0 writes checkpoints straight into the run folder, whole or not at all; every start and restart goes
on from the newest undamaged one. Ray is told of no checkpoint, since its own copy would be neither whole nor
verified.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from ray.train import get_context
from ray.train import report as report_to_ray
from ray.train.torch import get_device

from passerelle.data.pairs import SentencePairs, open_shards
from passerelle.models import build_model
from passerelle.training.attendance import Attendance
from passerelle.training.checkpoint import (
    checkpoint_folders,
    checkpoint_name,
    checkpoint_step,
    latest_checkpoint,
    read_facts,
    save_checkpoint,
)
from passerelle.training.divergence import Diverged, write_diverged
from passerelle.training.group import Group
from passerelle.training.job import Job
from passerelle.training.loop import Report, train
from passerelle.training.publish import is_run_finished, prune_checkpoints
from passerelle.training.state import checker
from passerelle.training.stopping import is_stop_asked
from passerelle.training.terminal import progress_writer, validation_line, write_event


def train_in_worker(job: Job) -> None:
    """Take part in the training until it is finished or stopped."""
    rank, num_workers = get_context().get_world_rank(), get_context().get_world_size()
    torch.set_num_threads(job.threads)
    with Attendance(job.run_folder, rank, num_workers, job.exchange_seconds) as attendance:

        def reduce(tensor: torch.Tensor) -> None:
            attendance.come()
            if num_workers > 1:
                torch.distributed.all_reduce(tensor)

        _train(job, Group(rank, num_workers, reduce), attendance)


def _train(job: Job, group: Group, attendance: Attendance) -> None:
    params, run_folder, device = job.params, job.run_folder, get_device()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    attendance.step = _first_step(job, group, device)
    bleu = None
    if job.bleu is not None:
        bleu = job.bleu.on(device, rank=group.rank, num_workers=group.num_workers, reduce=group.reduce)
    train_pairs = open_shards(job.shards / "train")

    def save(step: int, write: Callable[[Path], None]) -> None:
        if group.rank == 0:
            prune_checkpoints(run_folder, save_checkpoint(run_folder, step, write), params.training)

    def stop() -> bool:
        attendance.step += 1
        return is_stop_asked(run_folder)

    torch.manual_seed(params.training.seed)
    try:
        train(
            build_model(params.model, job.vocab_size),
            train_pairs,
            open_shards(job.shards / "valid"),
            params.training,
            device=device,
            group=group,
            report=_reporter(job, group, attendance),
            save=save,
            stop=stop,
            progress=progress_writer(run_folder) if group.rank == 0 else lambda progress: None,
            validation_bleu=bleu,
            resume_from=run_folder / checkpoint_name(attendance.step) if attendance.step else None,
        )
    except Diverged as error:
        if group.rank == 0:  # the others have nothing to add, and just end
            raise FloatingPointError(_divergence(run_folder, error, train_pairs)) from None


def _first_step(job: Job, group: Group, device: torch.device) -> int:
    """The steps done so far, by worker 0's newest undamaged checkpoint; the first exchange of all workers."""
    step = torch.zeros(1, dtype=torch.int64, device=device)
    if group.rank == 0 and checkpoint_folders(job.run_folder):  # the checker takes 1.2 s to make
        latest = latest_checkpoint(job.run_folder, checker(job.params, job.vocab_size))
        step += checkpoint_step(latest) if latest else 0
    group.reduce(step)
    return int(step.item())


def _reporter(job: Job, group: Group, attendance: Attendance) -> Callable[[Report], None]:
    """What is done after a validation: worker 0 writes a checkpoint, and the rows of the history go to Ray."""
    training, run_folder = job.params.training, job.run_folder
    has_reported = False

    def report(report: Report) -> None:
        nonlocal has_reported
        metrics: dict[str, Any] = {"step": report.step}
        if group.rank == 0:
            folder = save_checkpoint(run_folder, report.step, report.write)
            prune_checkpoints(run_folder, folder, training)
            facts = read_facts(folder)
            # The first time all rows, since those before an interruption may have reached nobody.
            metrics["rows"] = report.history if has_reported else facts["history"]
            metrics["is_finished"] = is_run_finished(facts, training)
            write_event(run_folder, validation_line(report.step, report.metrics))
            has_reported = True
        attendance.come()
        report_to_ray(metrics)

    return report


def _divergence(run_folder: Path, error: Diverged, train_pairs: SentencePairs) -> str:
    """One line: what happened, where the batch is kept, what to do."""
    try:
        kept = f"the last batch is kept in {write_diverged(run_folder, error, train_pairs)}"
    except OSError as failure:
        kept = f"the last batch could not be kept ({failure})"
    steps = [checkpoint_step(folder) for folder in checkpoint_folders(run_folder)]
    last = (
        f"the last checkpoint, at step {steps[-1]}, is from before" if steps else "there is no checkpoint yet"
    )
    return f"{error}; {kept}; {last}; lower training.learning_rate or lengthen training.warmup_steps"
