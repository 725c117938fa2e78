"""The Ray that a training starts listens on this machine alone, and answers nobody without its token."""

import http.client
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import grpc
import psutil
import pytest

from passerelle.training.ray_cluster import private_folder

TRAINING = """
import sys, time
from pathlib import Path

from passerelle.training.ray_cluster import cluster

def work(config):
    import torch
    from ray.train import get_context
    rank = get_context().get_world_rank()
    total = torch.tensor([1.0 + rank])
    torch.distributed.all_reduce(total)
    said = Path(config["folder"], f"said-{rank}")
    said.write_text(str(total.item()))
    said.rename(said.with_name(f"worker-{rank}"))
    while not Path(config["folder"], "end").exists():
        time.sleep(0.1)

with cluster(60.0):
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer
    from passerelle.training.ray_group import GroupConfig
    Path(sys.argv[1], "address").write_text(ray.get_runtime_context().gcs_address)
    TorchTrainer(
        work, train_loop_config={"folder": sys.argv[1]}, torch_config=GroupConfig(timeout_s=120),
        scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}),
        run_config=RunConfig(storage_path=sys.argv[1], name="run"),
    ).fit()
"""
JOINING = """
import sys
from passerelle.training.ray_cluster import cluster

try:
    with cluster(60.0) as (nodes, free):
        print("joined", len(nodes))
except ValueError as error:
    sys.exit(f"error: {error}")
"""
SECONDS = 300.0


@dataclass(frozen=True)
class Training:
    """One that is running, with two workers that have exchanged something."""

    folder: Path
    environment: dict[str, str]
    process: psutil.Process

    @property
    def address(self) -> str:
        return (self.folder / "address").read_text(encoding="utf-8")

    @property
    def token(self) -> str:
        return (self.folder / ".ray" / "auth_token").read_text(encoding="utf-8")

    def listening(self) -> list[tuple[str, int, str]]:
        """Address, port and command of each socket that listens."""
        found = []
        for process, command in self.processes():
            with suppress(psutil.NoSuchProcess):  # Ray starts some that soon end
                sockets = process.net_connections("inet")
                found += [
                    (s.laddr.ip, s.laddr.port, command) for s in sockets if s.status == psutil.CONN_LISTEN
                ]
        return found

    def processes(self) -> list[tuple[psutil.Process, str]]:
        """The driver and all below it, with their commands."""
        found = []
        for process in (self.process, *self.process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                found.append((process, " ".join(process.cmdline())))
        return found


def wait_until(is_so: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + SECONDS
    while not is_so():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end, "nothing came"
        time.sleep(0.1)


def environment_in(home: Path) -> dict[str, str]:
    """As a user has it who has set nothing."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "GLOO_", "NCCL_"))
    }
    return kept | {"HOME": str(home)}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("ports")
    environment = environment_in(folder)
    process = subprocess.Popen(
        [sys.executable, "-c", TRAINING, str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until(lambda: all((folder / f"worker-{rank}").exists() for rank in (0, 1)), process)
        yield Training(folder, environment, psutil.Process(process.pid))
        (folder / "end").touch()
        output, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, output
    finally:
        process.kill()
        process.wait()


def test_workers_reach_one_another_and_nothing_listens_beyond_this_machine(training: Training) -> None:
    assert {(training.folder / f"worker-{rank}").read_text() for rank in (0, 1)} == {"3.0"}
    listening = training.listening()
    for command in ("gcs_server", "raylet", "dashboard.py", "RayTrainWorker"):
        assert any(command in line for _, _, line in listening), command
    assert {ip.removeprefix("::ffff:") for ip, _, _ in listening} <= {"127.0.0.1", "::1"}, listening


def asked_for_jobs(port: int, token: str | None) -> str:
    """What a port says of the cluster's jobs: `told`, `refused`, or nothing."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/jobs/")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        content = urllib.request.urlopen(request, timeout=60).read()
    except urllib.error.HTTPError as error:
        return "refused" if error.code in (401, 403) else ""
    except (OSError, http.client.HTTPException):
        return ""
    return "told" if content.startswith(b"[") else ""  # the port beside it answers all with metrics


def test_the_job_port_answers_nobody_without_the_token(training: Training) -> None:
    ports = [port for _, port, command in training.listening() if "dashboard.py" in command]
    for token in (None, "0" * 64):
        answers = {asked_for_jobs(port, token) for port in ports}
        assert "refused" in answers
        assert "told" not in answers
    assert "told" in {asked_for_jobs(port, training.token) for port in ports}


CALLS = {
    "gcs_server": "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo",
    "raylet/raylet": "/ray.rpc.NodeManagerService/GetNodeStats",
    "RayTrainWorker": "/ray.rpc.CoreWorkerService/GetCoreWorkerStats",
}
"""Of each kind of process, a question that it answers to whoever belongs to the cluster."""


def metadata(token: str | None) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),) if token else ()


def answer(port: int, call: str, token: str | None) -> grpc.StatusCode:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            channel.unary_unary(call)(b"", timeout=60, metadata=metadata(token))
        except grpc.RpcError as error:
            return error.code()
    return grpc.StatusCode.OK


def port_that_answers(ports: list[int], call: str, token: str) -> int:
    """All are asked at once, since those that speak another language never answer."""
    with ExitStack() as channels:
        asked = {}
        for port in ports:
            channel = channels.enter_context(grpc.insecure_channel(f"127.0.0.1:{port}"))
            asked[port] = channel.unary_unary(call).future(b"", timeout=60, metadata=metadata(token))
        while True:
            is_over = all(one.done() for one in asked.values())
            codes = {port: one.code() for port, one in asked.items() if one.done()}
            for port, code in codes.items():
                if code is grpc.StatusCode.OK:
                    return port
            assert not is_over, codes
            time.sleep(0.05)


@pytest.mark.parametrize("process", CALLS)
def test_rays_processes_answer_nobody_without_the_token(training: Training, process: str) -> None:
    ports = [port for _, port, command in training.listening() if process in command]
    port = port_that_answers(ports, CALLS[process], training.token)
    for token in (None, "0" * 64):
        assert answer(port, CALLS[process], token) is grpc.StatusCode.UNAUTHENTICATED


def test_whoever_has_no_token_is_told_in_one_line(training: Training, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JOINING],
        env=environment_in(tmp_path) | {"RAY_ADDRESS": training.address},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: RAY_ADDRESS={training.address}: Ray cannot join the cluster: ")
    assert "`ray get-auth-token` shows it" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_what_commands_ray_is_for_its_user_alone(training: Training) -> None:
    session = next(
        word for _, _, line in training.listening() for word in line.split() if "--session-dir=" in word
    )
    folder = Path(session.partition("=")[2])
    private = next(above for above in folder.parents if above.name.startswith("passerelle-"))
    assert private.stat().st_mode & 0o777 == 0o700
    assert (training.folder / ".ray" / "auth_token").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_somebody_else_has_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert private_folder(tmp_path) == private_folder(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    for made in (lambda path: path.mkdir(), lambda path: path.symlink_to(tmp_path / "elsewhere")):
        folder = tmp_path / "passerelle-54321"
        made(folder)
        with pytest.raises(ValueError, match=r"passerelle-54321: must be a folder of yours, but is somebody"):
            private_folder(tmp_path)
        folder.rmdir() if not folder.is_symlink() else folder.unlink()


def test_whoever_has_the_token_joins(training: Training) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JOINING],
        env=training.environment
        | {
            "RAY_ADDRESS": training.address,
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        },  # else Ray asks at another address
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.stdout == "joined 1\n", done.stderr


def test_ray_reports_nothing_to_its_makers(training: Training) -> None:
    for name in ("dashboard.py", "gcs_server", "raylet/raylet"):  # these do not end before the training
        (process, *_) = [one for one, command in training.processes() if name in command.partition(" --")[0]]
        assert process.environ().get("RAY_USAGE_STATS_ENABLED") == "0", process
