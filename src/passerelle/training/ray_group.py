"""The workers' process group, whose meeting point listens at the address that Ray uses; imports Ray.

Ray's own has torch listen on every interface of the machine, and torch asks nobody for a token.
"""

import socket
from datetime import timedelta
from typing import Any

import ray
from ray.train.torch import TorchConfig
from torch.distributed import TCPStore, init_process_group  # type: ignore[attr-defined]


class GroupConfig(TorchConfig):  # type: ignore[misc]
    """As Ray's, with the meeting point bound to one address."""

    @property
    def backend_cls(self) -> type:
        """What Ray asks for."""
        return _Backend


class _Backend(TorchConfig().backend_cls):  # type: ignore[misc]
    """Leaves the group as Ray's does."""

    def on_start(self, worker_group: Any, backend_config: TorchConfig) -> None:
        """Called by Ray's controller when all workers have started."""
        host, port, descriptor = worker_group.execute_single(0, _listen)
        backend = "nccl" if worker_group.get_resources_per_worker().get("GPU", 0) else "gloo"
        num_workers, seconds = len(worker_group), backend_config.timeout_s
        ray.get(
            [
                worker_group.execute_single_async(
                    rank, _join, backend, rank, num_workers, host, port, None if rank else descriptor, seconds
                )
                for rank in range(num_workers)
            ]
        )


def _listen() -> tuple[str, int, int]:
    """Host, port and file descriptor of a socket that listens, in worker 0."""
    host = ray.util.get_node_ip_address()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, 0), family=family)
    return host, listening.getsockname()[1], listening.detach()


def _join(
    backend: str, rank: int, num_workers: int, host: str, port: int, descriptor: int | None, seconds: float
) -> None:
    timeout = timedelta(seconds=seconds)
    store = TCPStore(
        host, port, num_workers, is_master=rank == 0, timeout=timeout, master_listen_fd=descriptor
    )
    init_process_group(backend, store=store, rank=rank, world_size=num_workers, timeout=timeout)
