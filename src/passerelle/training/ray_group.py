"""The workers' process group, whose meeting point listens at the address that Ray uses; imports Ray.

Ray's own has torch listen on every interface of the machine, and torch asks nobody for a token. It also loads torch
in Ray's controller, which begins no worker before: 1.5 s of the start.
"""

import logging
import socket
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import ray
from ray.train.backend import Backend, BackendConfig

logger = logging.getLogger(__name__)

LEAVE_SECONDS = 30.0
"""That the workers' leaving of the group is waited for."""


@dataclass
class GroupConfig(BackendConfig):  # type: ignore[misc]
    """How the workers form their group."""

    timeout_s: float
    """Of every exchange, in seconds."""
    backend: str = "gloo"
    """torch's: gloo, or nccl where each worker has a GPU."""

    @property
    def backend_cls(self) -> type:
        """What Ray asks for."""
        return _Backend


class _Backend(Backend):  # type: ignore[misc]
    share_cuda_visible_devices = True
    """As for Ray's own, so that NCCL can reach the other GPUs of a machine."""

    def on_start(self, worker_group: Any, backend_config: GroupConfig) -> None:
        """Called by Ray's controller when all workers have started."""
        host, port, descriptor = worker_group.execute_single(0, _listen)
        backend, seconds = backend_config.backend, backend_config.timeout_s
        num_workers = len(worker_group)
        ray.get(
            [
                worker_group.execute_single_async(
                    rank, _join, backend, rank, num_workers, host, port, None if rank else descriptor, seconds
                )
                for rank in range(num_workers)
            ]
        )

    def on_shutdown(self, worker_group: Any, backend_config: GroupConfig) -> None:
        """Called by Ray's controller before the workers end."""
        try:
            ray.get(worker_group.execute_async(_leave), timeout=LEAVE_SECONDS)
        except ray.exceptions.GetTimeoutError:
            logger.warning("workers did not leave their process group within %.0f s", LEAVE_SECONDS)


def _listen() -> tuple[str, int, int]:
    """Host, port and file descriptor of a socket that listens, in worker 0."""
    host = ray.util.get_node_ip_address()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, 0), family=family)
    return host, listening.getsockname()[1], listening.detach()


def _join(
    backend: str, rank: int, num_workers: int, host: str, port: int, descriptor: int | None, seconds: float
) -> None:
    from torch.distributed import TCPStore, init_process_group  # type: ignore[attr-defined]

    timeout = timedelta(seconds=seconds)
    store = TCPStore(
        host, port, num_workers, is_master=rank == 0, timeout=timeout, master_listen_fd=descriptor
    )
    init_process_group(backend, store=store, rank=rank, world_size=num_workers, timeout=timeout)


def _leave() -> None:
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()
