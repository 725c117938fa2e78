"""Training on Ray: starts or joins a cluster, runs the loop on its workers, restarts what dies; imports Ray.

The driver (`train_on_ray`, in the stage) starts Ray Train's controller, and that the workers (`_work`).
Worker 0 writes checkpoints straight into the run folder, whole or not at all; every start and restart goes
on from the newest undamaged one. Ray is told of no checkpoint, since its own copy would be neither whole nor
verified. Ray is imported where it is used, since it takes seconds.
"""

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passerelle.config import TrainParams
from passerelle.data.pairs import open_shards
from passerelle.training.checkpoint import latest_checkpoint, read_facts, save_checkpoint
from passerelle.training.failure import fault, may_pass
from passerelle.training.group import Bleu
from passerelle.training.publish import is_run_finished, prune_checkpoints
from passerelle.training.terminal import (
    LiveLine,
    beginning,
    ending,
    progress_writer,
    validation_line,
    write_event,
)
from passerelle.training.workers import VARIABLE, Workers, check_ray_address, choose_workers

logger = logging.getLogger(__name__)

RAY_DEFAULTS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",  # Ray sets it for a cluster that it starts, but not for one that it joins
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.5",  # also how often the workers' reports are taken
}
OBJECT_STORE_BYTES = 100 * 2**20
"""Little but the training function passes through it; Ray wants 75 MiB."""
EXCHANGE_SECONDS = 300
"""A worker that waits longer than this for the others gives up."""
MOST_RESTARTS = 3
MOST_START_FAILURES = 10
"""Of a minute each: as long as a busy cluster is waited for."""

OnRows = Callable[[Sequence[Mapping[str, float]], bool], None]
"""Takes rows of the history, and whether they are the last; pickled, and called in Ray's controller."""


@dataclass(frozen=True)
class Job:
    """What a worker is given."""

    params: TrainParams
    shards: Path
    vocab_size: int
    run_folder: Path
    threads: int
    bleu: Bleu | None


def train_on_ray(
    params: TrainParams,
    *,
    shards: Path,
    vocab_size: int,
    run_folder: Path,
    on_rows: OnRows,
    bleu: Bleu | None,
) -> None:
    """Train, or go on training, until the run is finished. Returns at once where it is.

    Raises ValueError or OSError for faults of the user's, TrainingError for others, and SystemExit where the
    user stops it, after saying how to go on.
    """
    latest = latest_checkpoint(run_folder)
    if latest is not None and is_run_finished(read_facts(latest), params.training):
        return
    for split in ("train", "valid"):
        open_shards(shards / split)  # what is wrong with them is said now, not by a worker
    try:
        with _cluster() as (nodes, free):
            workers = choose_workers(
                os.environ.get(VARIABLE, ""), nodes, params.training.micro_batches_per_step
            )
            print(beginning(run_folder, latest, workers, free), flush=True)
            job = Job(params, shards.resolve(), vocab_size, run_folder.resolve(), workers.threads, bleu)
            with LiveLine(run_folder):
                _fit(job, workers, on_rows)
    except (KeyboardInterrupt, SystemExit):  # Ray turns a termination signal into SystemExit
        print(ending(run_folder), flush=True)
        raise SystemExit(130) from None


@contextmanager
def _cluster() -> Iterator[tuple[list[Mapping[str, float]], Mapping[str, float]]]:
    """Joins the cluster at $RAY_ADDRESS, else starts one here; gives the resources of its machines, and the free."""
    for name, value in RAY_DEFAULTS.items():
        os.environ.setdefault(name, value)
    address = os.environ.get("RAY_ADDRESS") or "local"
    check_ray_address(address)
    import ray

    is_verbose = logger.isEnabledFor(logging.INFO)
    level = logging.INFO if is_verbose else logging.ERROR
    local_options = {
        "include_dashboard": True,
        "dashboard_host": "127.0.0.1",
        "object_store_memory": OBJECT_STORE_BYTES,
        "_temp_dir": f"/tmp/ray-{os.getuid()}",  # sockets are in it, and their paths have at most 107 bytes
    }
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    is_own = not ray.is_initialized()
    try:
        if is_own:
            try:
                options = local_options if address == "local" else {}
                ray.init(address, log_to_driver=is_verbose, logging_level=level, **options)
            except (ConnectionError, ray.exceptions.AuthenticationError) as error:
                raise ValueError(f"RAY_ADDRESS={address}: Ray cannot join the cluster: {error}") from None
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if len(nodes) == 1:  # nothing to watch; the watcher logs an alarming line at each start
            os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
        yield nodes, ray.available_resources()
    finally:
        if is_own:
            ray.shutdown()
        for number, handler in handlers.items():  # Ray has set its own
            signal.signal(number, handler)


def _fit(job: Job, workers: Workers, on_rows: OnRows) -> None:
    from ray.train import FailureConfig, LoggingConfig, RunConfig, ScalingConfig, TrainingFailedError
    from ray.train.torch import TorchConfig, TorchTrainer

    log_level = "INFO" if logger.isEnabledFor(logging.INFO) else "CRITICAL"
    trainer = TorchTrainer(
        _work,
        train_loop_config={"job": job},
        torch_config=TorchConfig(timeout_s=EXCHANGE_SECONDS),
        scaling_config=ScalingConfig(
            num_workers=workers.number, use_gpu=workers.use_gpu, resources_per_worker=workers.resources
        ),
        run_config=RunConfig(
            name=job.run_folder.name,
            storage_path=str(job.run_folder.parent),
            failure_config=FailureConfig(
                max_failures=MOST_RESTARTS, controller_failure_limit=MOST_START_FAILURES
            ),
            callbacks=[_controller_callback(job.run_folder, on_rows)],
            logging_config=LoggingConfig(log_level=log_level),
        ),
    )
    failures: list[BaseException] = []

    def fit() -> None:
        try:
            trainer.fit()
        except BaseException as error:
            failures.append(error)

    # In a thread of its own, so that Ctrl-C stops at once: in the main one, Ray would take it and wait for workers.
    thread = threading.Thread(target=fit, name="ray train", daemon=True)
    thread.start()
    thread.join()
    for failure in failures:
        raise fault(failure) if isinstance(failure, TrainingFailedError) else failure from None


def _controller_callback(run_folder: Path, on_rows: OnRows) -> Any:
    """Hands rows on, says that workers are started again, and stops where that would not help."""
    from ray.train import UserCallback

    class Callback(UserCallback):  # type: ignore[misc]
        def after_report(self, run_context: Any, metrics: list[dict[str, Any]], checkpoint: Any) -> None:
            on_rows(metrics[0]["rows"], metrics[0]["is_finished"])

        num_failures = 0

        def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:
            for error in worker_exceptions.values():
                if not may_pass(error):
                    raise error
            self.num_failures += 1
            if self.num_failures > MOST_RESTARTS:
                return
            ranks = ", ".join(str(rank) for rank in sorted(worker_exceptions))
            write_event(
                run_folder, f"worker {ranks} of training died; starting again from the last checkpoint"
            )

    return Callback()


def _work(config: dict[str, Any]) -> None:
    """What each worker does."""
    import torch
    from ray.train import get_context
    from ray.train import report as report_to_ray
    from ray.train.collective import broadcast_from_rank_zero
    from ray.train.torch import get_device

    from passerelle.models import build_model
    from passerelle.training.group import Group
    from passerelle.training.loop import Report, train

    job: Job = config["job"]
    params, run_folder = job.params, job.run_folder
    rank, num_workers = get_context().get_world_rank(), get_context().get_world_size()
    torch.set_num_threads(job.threads)
    latest = latest_checkpoint(run_folder) if rank == 0 else None
    name = broadcast_from_rank_zero(latest.name if latest else None)
    has_reported = False

    def report(report: Report) -> None:
        nonlocal has_reported
        metrics: dict[str, Any] = {"step": report.step}
        if rank == 0:
            folder = save_checkpoint(run_folder, report.step, report.write)
            prune_checkpoints(run_folder, folder, params.training)
            facts = read_facts(folder)
            # The first time all rows, since those before an interruption may have reached nobody.
            metrics["rows"] = report.history if has_reported else facts["history"]
            metrics["is_finished"] = is_run_finished(facts, params.training)
            write_event(run_folder, validation_line(report.step, report.metrics))
            has_reported = True
        report_to_ray(metrics)

    def reduce(tensor: torch.Tensor) -> None:
        if num_workers > 1:
            torch.distributed.all_reduce(tensor)

    bleu = job.bleu.on(get_device(), rank=rank, num_workers=num_workers, reduce=reduce) if job.bleu else None
    torch.manual_seed(params.training.seed)
    train(
        build_model(params.model, job.vocab_size),
        open_shards(job.shards / "train"),
        open_shards(job.shards / "valid"),
        params.training,
        device=get_device(),
        group=Group(rank, num_workers, reduce),
        report=report,
        progress=progress_writer(run_folder) if rank == 0 else lambda progress: None,
        validation_bleu=bleu,
        resume_from=run_folder / name if name else None,
    )
