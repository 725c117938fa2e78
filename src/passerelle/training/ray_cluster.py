"""The Ray cluster that training runs on: joined at $RAY_ADDRESS, else started on this machine for the while."""

import logging
import os
import signal
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from passerelle.training.workers import check_ray_address

logger = logging.getLogger(__name__)

RAY_DEFAULTS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",  # Ray sets it for a cluster that it starts, but not for one that it joins
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.5",  # also how often the workers' reports are taken
}
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
OWN_DEFAULTS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on every system: Ray binds each of its ports to 127.0.0.1 alone
    "GLOO_SOCKET_IFNAME": LOOPBACK,  # what the workers tell one another
    "NCCL_SOCKET_IFNAME": LOOPBACK,
    "RAY_prestart_worker_first_driver": "0",  # else processes that no actor of Ray Train can use: 2 s of its start
}
"""For a cluster that is started here, of this machine alone; Ray reads the first where it is imported."""
LONGER_SECONDS = 10.0
"""Ray waits for an answer, since the workers know better for whom and for what they wait."""
OBJECT_STORE_BYTES = 100 * 2**20
"""Little but the training function passes through it; Ray wants 75 MiB."""
SHORT = Path("/tmp")
"""Not tempfile's: Ray's sockets are below it, and their paths have at most 107 bytes."""


@contextmanager
def cluster(exchange_seconds: float) -> Iterator[tuple[list[Mapping[str, float]], Mapping[str, float]]]:
    """Joins or starts a cluster; gives the resources of its machines, and the free. Signals keep their handlers.

    exchange_seconds: how long workers wait for one another; one that does not answer Ray counts as lost a little later.
    """
    silence = {"RAY_TRAIN_WORKER_HEALTH_CHECK_TIMEOUT_S": str(exchange_seconds + LONGER_SECONDS)}
    address = os.environ.get("RAY_ADDRESS") or "local"
    own = OWN_DEFAULTS if address == "local" else {}
    for name, value in (RAY_DEFAULTS | silence | own).items():
        os.environ.setdefault(name, value)
    check_ray_address(address)
    import ray

    is_own = not ray.is_initialized()
    try:
        if is_own:
            _connect(address)
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if len(nodes) == 1:  # nothing to watch; the watcher logs an alarming line at each start
            os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
        yield nodes, ray.available_resources()
    finally:
        if is_own:
            ray.shutdown()


def private_folder(parent: Path) -> Path:
    """A folder of this user's alone, made where there is none; ValueError where somebody else has made it.

    Ray lets everybody write into its own folder, and what it holds there commands it.
    """
    folder = parent / f"passerelle-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise ValueError(f"{folder}: must be a folder of yours, but is somebody else's; have it removed")
    folder.chmod(0o700)
    return folder


def _keep_token() -> None:
    """Ray lets everybody on the machine read the token that it makes."""
    token = Path.home() / ".ray" / "auth_token"
    if token.is_file():
        token.chmod(0o600)


def _connect(address: str) -> None:
    import ray

    is_verbose = logger.isEnabledFor(logging.INFO)
    options = {}
    if address == "local":
        options = {
            "include_dashboard": True,
            "dashboard_host": "127.0.0.1",
            "object_store_memory": OBJECT_STORE_BYTES,
            "_temp_dir": str(private_folder(SHORT) / "ray"),
        }
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with _groups_of_their_own():
            ray.init(
                address,
                log_to_driver=is_verbose,
                logging_level=logging.INFO if is_verbose else logging.ERROR,
                **options,
            )
    except (ConnectionError, ray.exceptions.AuthenticationError) as error:
        raise ValueError(
            f"RAY_ADDRESS={address}: Ray cannot join the cluster: {error}; is your token that of the cluster? "
            "`ray get-auth-token` shows it"
        ) from None
    except Exception as error:
        if type(error) is not Exception:  # Ray has no class of its own for a start that took over 30 s
            raise
        raise TimeoutError(
            f"Ray did not start: {error} Run the same command again once the machine is less busy"
        ) from None
    else:
        _keep_token()
    finally:
        for number, handler in handlers.items():  # Ray has set its own
            signal.signal(number, handler)


@contextmanager
def _groups_of_their_own() -> Iterator[None]:
    """Ray's processes get process groups of their own, as on Windows they always do.

    Else a signal to the whole group of the stage, as `tini -g` sends it to stop a container, would end Ray before the
    workers can write a last checkpoint. On Linux the kernel ends them with the stage, whatever their group; elsewhere
    Ray does it by the group, so there they stay in it.
    """
    from ray._private import services

    if sys.platform != "linux":
        yield
        return
    popen = services.ConsolePopen
    services.ConsolePopen = partial(popen, process_group=0)
    try:
        yield
    finally:
        services.ConsolePopen = popen
