"""Training on Ray: has the workers run the loop, starts them again when one is lost, stops them when asked.

The driver (`train_on_ray`, in the stage) starts Ray Train's controller, and that the workers (`ray_worker`).
Ray and torch are imported where they are used, since they take seconds.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passerelle.config import TrainParams
from passerelle.data.pairs import open_shards, verify_shards
from passerelle.training.attendance import forget
from passerelle.training.checkpoint import (
    checkpoint_folders,
    latest_checkpoint,
    read_facts,
    remove_unfinished,
)
from passerelle.training.failure import Restarts, fault
from passerelle.training.job import Job, work
from passerelle.training.ray_cluster import cluster
from passerelle.training.stopping import Stopping
from passerelle.training.terminal import LiveLine, beginning, ending
from passerelle.training.workers import (
    EXCHANGE_SECONDS,
    VARIABLE,
    Workers,
    choose_workers,
    exchange_seconds,
    grace_seconds,
)

if TYPE_CHECKING:
    from passerelle.training.group import Bleu  # loads torch

logger = logging.getLogger(__name__)

MOST_START_FAILURES = 10
"""Of a minute each: as long as a busy cluster is waited for."""

OnRows = Callable[[Sequence[Mapping[str, float]], bool], None]
"""Takes rows of the history, and whether they are the last; pickled, and called in Ray's controller."""


def train_on_ray(
    params: TrainParams,
    *,
    shards: Path,
    vocab_size: int,
    run_folder: Path,
    on_rows: OnRows,
    bleu: "Bleu | None",
) -> None:
    """Train, or go on training, until the run is finished. Returns at once where it is.

    The shards' hashes are compared first: 0.01 s for fra-eng, and 100 s for 100 GB, since 1 GB/s a core was measured
    (where the disk is as fast).
    Raises ValueError or OSError for faults of the user's, TrainingError for others, and SystemExit where a signal
    stops it, after saying how to go on.
    """
    remove_unfinished(run_folder)
    latest, is_finished = _latest(run_folder, params, vocab_size)
    if is_finished:
        return
    for split in ("train", "valid"):  # what is wrong with them is said now, not by a worker
        open_shards(shards / split)
        verify_shards(shards / split)
    forget(run_folder)
    seconds = exchange_seconds()
    stopping = Stopping(run_folder, grace_seconds())
    try:
        with stopping, cluster(seconds) as (nodes, free):
            workers = choose_workers(
                os.environ.get(VARIABLE, ""), nodes, params.training.micro_batches_per_step
            )
            print(beginning(run_folder, latest, workers, free), flush=True)
            job = Job(
                params, shards.resolve(), vocab_size, run_folder.resolve(), workers.threads, seconds, bleu
            )
            _fit(job, workers, on_rows, stopping)
        if stopping.is_asked:
            raise SystemExit
    except (KeyboardInterrupt, SystemExit):  # Ray raises both too
        print(ending(run_folder), flush=True)
        raise SystemExit(stopping.status) from None


def _latest(run_folder: Path, params: TrainParams, vocab_size: int) -> tuple[Path | None, bool]:
    """The checkpoint to go on from, and whether it is the run's end. Loads torch where there is any."""
    if not checkpoint_folders(run_folder):
        return None, False
    from passerelle.training.publish import is_run_finished
    from passerelle.training.state import checker

    latest = latest_checkpoint(run_folder, checker(params, vocab_size))
    return latest, latest is not None and is_run_finished(read_facts(latest), params.training)


def _fit(job: Job, workers: Workers, on_rows: OnRows, stopping: Stopping) -> None:
    """Returns where training is finished, or was stopped, whatever Ray made of that."""
    from ray.train import TrainingFailedError

    trainer = _trainer(job, workers, on_rows)
    failures: list[BaseException] = []

    def fit() -> None:
        try:
            trainer.fit()
        except TrainingFailedError as error:
            failures.append(fault(error))
        except BaseException as error:
            failures.append(error)

    # In a thread of its own, so that signals come to us: in the main one, Ray would take them and wait for workers.
    thread = threading.Thread(target=fit, name="ray train", daemon=True)
    with LiveLine(job.run_folder) as line:
        thread.start()
        stopping.wait_for(thread, line.say)
    for failure in failures:
        if not stopping.is_asked or _is_told(failure):
            raise failure from None


def _is_told(failure: BaseException) -> bool:
    """Whether the user is told of it even after a stop: a full disk is, a lost worker is not."""
    is_lost = isinstance(failure, ConnectionError | ChildProcessError)
    return isinstance(failure, ValueError | OSError) and not is_lost


def _trainer(job: Job, workers: Workers, on_rows: OnRows) -> Any:
    from ray.train import FailureConfig, LoggingConfig, RunConfig, ScalingConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    from passerelle.training.ray_group import GroupConfig

    log_level = "INFO" if logger.isEnabledFor(logging.INFO) else "CRITICAL"
    return DataParallelTrainer(
        partial(work, job),
        backend_config=GroupConfig(
            # Later than ours, which names the worker that did not come.
            timeout_s=max(job.exchange_seconds, EXCHANGE_SECONDS) + 60.0,
            backend="nccl" if workers.use_gpu else "gloo",
        ),
        scaling_config=ScalingConfig(
            num_workers=workers.number, use_gpu=workers.use_gpu, resources_per_worker=workers.resources
        ),
        run_config=RunConfig(
            name=job.run_folder.name,
            storage_path=str(job.run_folder.parent),
            failure_config=FailureConfig(
                max_failures=-1, controller_failure_limit=MOST_START_FAILURES
            ),  # the callback ends it
            callbacks=[_controller_callback(job.run_folder, on_rows)],
            logging_config=LoggingConfig(log_level=log_level),
        ),
    )


def _controller_callback(run_folder: Path, on_rows: OnRows) -> Any:
    """Hands rows on, says that workers are started again, and stops where that would not help."""
    from ray.train import UserCallback

    restarts = Restarts(run_folder)

    class Callback(UserCallback):  # type: ignore[misc]
        def after_report(self, run_context: Any, metrics: list[dict[str, Any]], checkpoint: Any) -> None:
            on_rows(metrics[0]["rows"], metrics[0]["is_finished"])

        def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:
            restarts.after(worker_exceptions)

    return Callback()
