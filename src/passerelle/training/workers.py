"""Where training runs: the address of a Ray cluster, how many workers, with what each."""

import math
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VARIABLE = "PASSERELLE_NUM_WORKERS"
AUTO_CPU_WORKERS = 2
PREFLIGHT_SECONDS = 5.0
EXCHANGE_VARIABLE, EXCHANGE_SECONDS = "PASSERELLE_EXCHANGE_SECONDS", 300.0
"""How long a worker waits for the others, before they count as lost."""
GRACE_VARIABLE, GRACE_SECONDS = "PASSERELLE_GRACE_SECONDS", 20.0
"""How long a last checkpoint is waited for when training is stopped; Kubernetes, for one, kills after 30 s."""


@dataclass(frozen=True)
class Workers:
    """The workers of a training run."""

    number: int
    use_gpu: bool
    """One GPU each."""
    threads: int
    """Processor cores of each."""
    note: str = ""
    """What the user should know about the choice."""

    @property
    def resources(self) -> dict[str, float]:
        """What each worker asks of Ray."""
        return {"CPU": self.threads, "GPU": 1} if self.use_gpu else {"CPU": self.threads}


def choose_workers(value: str, nodes: Sequence[Mapping[str, float]], micro_batches_per_step: int) -> Workers:
    """value: PASSERELLE_NUM_WORKERS, empty for auto; nodes: what each machine has, `CPU` and `GPU`.

    `auto` takes every GPU, else 2 CPU workers, but not more than cores or micro-batches in a step.
    Raises ValueError for what is not a number and for more workers than can work.
    """
    num_gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    num_cpus = sum(int(node.get("CPU", 0)) for node in nodes)
    most = num_gpus or max(num_cpus, 1)
    note = ""
    if _is_auto(value):
        wanted = num_gpus or min(AUTO_CPU_WORKERS, most)
        number = min(wanted, micro_batches_per_step)
        if number < num_gpus:
            note = (
                f"using {number} of {num_gpus} GPUs, since a step has {number} micro-batches; "
                "raise training.micro_batches_per_step to use more"
            )
    else:
        number = _parse(value)
        _check(number, most, "GPUs" if num_gpus else "CPUs", micro_batches_per_step)
    return Workers(number, bool(num_gpus), _threads(nodes, number, bool(num_gpus)), note)


def _is_auto(value: str) -> bool:
    return value.strip().lower() in ("", "auto")


def _parse(value: str) -> int:
    try:
        number = int(value)
    except ValueError:
        raise ValueError(f"{VARIABLE}={value}: must be `auto` or a whole number") from None
    if number < 1:
        raise ValueError(f"{VARIABLE}={value}: must be `auto` or at least 1")
    return number


def _check(number: int, most: int, unit: str, micro_batches_per_step: int) -> None:
    if number > most:
        raise ValueError(
            f"{VARIABLE}={number}: the Ray cluster has {most} {unit}; lower it, or leave it to `auto`"
        )
    _check_micro_batches(number, micro_batches_per_step)


def _check_micro_batches(number: int, micro_batches_per_step: int) -> None:
    if number > micro_batches_per_step:
        raise ValueError(
            f"{VARIABLE}={number}: a step has only training.micro_batches_per_step={micro_batches_per_step} "
            "micro-batches to deal out; use no more workers than that, or raise it in params.yaml"
        )


def _threads(nodes: Sequence[Mapping[str, float]], number: int, use_gpu: bool) -> int:
    """The most cores that every worker can have where they are, at least 1."""

    def places(threads: int) -> int:
        by_cpu = [int(node.get("CPU", 0)) // threads for node in nodes]
        by_gpu = [int(node.get("GPU", 0)) for node in nodes]
        return sum(map(min, by_cpu, by_gpu)) if use_gpu else sum(by_cpu)

    largest = max((int(node.get("CPU", 0)) for node in nodes), default=1)
    return next((threads for threads in range(largest, 1, -1) if places(threads) >= number), 1)


def exchange_seconds() -> float:
    """$PASSERELLE_EXCHANGE_SECONDS, else its default."""
    return _seconds(EXCHANGE_VARIABLE, EXCHANGE_SECONDS)


def grace_seconds() -> float:
    """$PASSERELLE_GRACE_SECONDS, else its default."""
    return _seconds(GRACE_VARIABLE, GRACE_SECONDS)


def _seconds(variable: str, default: float) -> float:
    value = os.environ.get(variable, "")
    try:
        seconds = float(value or default)
    except ValueError:
        seconds = math.nan
    if not 0.0 < seconds < math.inf:
        raise ValueError(f"{variable}={value}: must be a number of seconds above 0; unset, it is {default:g}")
    return seconds


def check_environment(micro_batches_per_step: int) -> None:
    """Raises ValueError for what can be told to be wrong in the environment before Ray is started, in seconds."""
    exchange_seconds()
    grace_seconds()
    check_ray_address(os.environ.get("RAY_ADDRESS") or "local")
    value = os.environ.get(VARIABLE, "")
    if not _is_auto(value):
        _check_micro_batches(_parse(value), micro_batches_per_step)


def check_ray_address(address: str) -> None:
    """Raises ValueError, in seconds, for an address that Ray would try for a minute or cannot train on."""
    if address in ("local", "auto"):
        return
    if "://" in address:
        raise ValueError(
            f"RAY_ADDRESS={address}: give host:port of the cluster's head (port 6379 as a rule), from one of "
            "its machines; from elsewhere use `ray job submit`"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"RAY_ADDRESS={address}: must be host:port, `auto`, or unset")
    try:
        socket.create_connection((host, int(port)), PREFLIGHT_SECONDS).close()
    except OSError as error:
        raise ValueError(
            f"RAY_ADDRESS={address}: nothing answers there ({error}); start the cluster, correct the "
            "address, or unset RAY_ADDRESS to train on this machine alone"
        ) from None
