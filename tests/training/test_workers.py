"""How many workers train, and with what."""

import socket
from collections.abc import Iterator

import pytest

from passerelle.training.workers import (
    Workers,
    check_environment,
    check_ray_address,
    choose_workers,
    exchange_seconds,
    grace_seconds,
)

LAPTOP = [{"CPU": 2.0}]
GPU_BOX = [{"CPU": 16.0, "GPU": 4.0}]


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        yield taken.getsockname()[1]


def test_auto_is_two_workers_on_processors() -> None:
    assert choose_workers("auto", LAPTOP, 4) == Workers(2, use_gpu=False, threads=1)
    assert choose_workers("", [{"CPU": 9.0}], 4) == Workers(2, use_gpu=False, threads=4)


def test_auto_is_one_worker_on_one_core_or_with_one_micro_batch() -> None:
    assert choose_workers("auto", [{"CPU": 1.0}], 4) == Workers(1, use_gpu=False, threads=1)
    assert choose_workers("auto", LAPTOP, 1) == Workers(1, use_gpu=False, threads=2)


def test_auto_is_every_gpu() -> None:
    assert choose_workers("auto", GPU_BOX, 4) == Workers(4, use_gpu=True, threads=4)
    assert choose_workers("auto", [*GPU_BOX, {"CPU": 6.0, "GPU": 1.0}], 8).number == 5


def test_gpus_without_a_micro_batch_are_left_idle_and_named() -> None:
    workers = choose_workers("auto", GPU_BOX, 3)
    assert workers.number == 3
    assert workers.note.startswith(
        "using 3 of 4 GPUs, since a step has 3 micro-batches; raise training.micro"
    )


def test_a_number_is_taken_at_its_word() -> None:
    assert choose_workers("1", LAPTOP, 4) == Workers(1, use_gpu=False, threads=2)
    assert choose_workers("2", GPU_BOX, 4) == Workers(2, use_gpu=True, threads=8)


def test_threads_fit_where_the_workers_are() -> None:
    assert choose_workers("2", [{"CPU": 2.0}] * 3, 4).threads == 2  # 6 cores, but no worker of 3
    assert choose_workers("3", [{"CPU": 5.0}, {"CPU": 2.0}], 4).threads == 2
    gpus = [{"CPU": 8.0, "GPU": 1.0}, {"CPU": 2.0, "GPU": 1.0}, {"CPU": 64.0}]
    assert choose_workers("auto", gpus, 4) == Workers(2, use_gpu=True, threads=2)


@pytest.mark.parametrize(
    ("value", "nodes", "micro_batches", "match"),
    [
        ("two", LAPTOP, 4, r"PASSERELLE_NUM_WORKERS=two: must be `auto` or a whole number"),
        ("1.5", LAPTOP, 4, r"PASSERELLE_NUM_WORKERS=1.5: must be `auto` or a whole number"),
        ("0", LAPTOP, 4, r"PASSERELLE_NUM_WORKERS=0: must be `auto` or at least 1"),
        ("3", LAPTOP, 4, r"PASSERELLE_NUM_WORKERS=3: the Ray cluster has 2 CPUs"),
        ("5", GPU_BOX, 8, r"PASSERELLE_NUM_WORKERS=5: the Ray cluster has 4 GPUs"),
        ("5", [{"CPU": 8.0}], 4, r"PASSERELLE_NUM_WORKERS=5: .*training.micro_batches_per_step=4"),
    ],
)
def test_what_cannot_work_is_refused(
    value: str, nodes: list[dict[str, float]], micro_batches: int, match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        choose_workers(value, nodes, micro_batches)


def test_a_cluster_that_does_not_answer_is_named(closed_port: int) -> None:
    with pytest.raises(ValueError, match=rf"RAY_ADDRESS=127.0.0.1:{closed_port}: nothing answers there"):
        check_ray_address(f"127.0.0.1:{closed_port}")


@pytest.mark.parametrize(
    ("address", "match"),
    [
        ("http://head:8265", "give host:port of the cluster's head"),
        ("ray://head:10001", "give host:port of the cluster's head"),
        ("head", "must be host:port, `auto`, or unset"),
        (":6379", "must be host:port, `auto`, or unset"),
    ],
)
def test_an_address_of_another_kind_is_refused(address: str, match: str) -> None:
    with pytest.raises(ValueError, match=f"RAY_ADDRESS={address}: .*{match}"):
        check_ray_address(address)


def test_a_cluster_that_answers_passes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_ray_address(f"127.0.0.1:{server.getsockname()[1]}")
    check_ray_address("auto")
    check_ray_address("local")


def test_the_environment_is_checked_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.delenv("PASSERELLE_NUM_WORKERS", raising=False)
    check_environment(1)
    monkeypatch.setenv("PASSERELLE_NUM_WORKERS", "3")
    check_environment(3)
    with pytest.raises(ValueError, match=r"PASSERELLE_NUM_WORKERS=3: .*training.micro_batches_per_step=2"):
        check_environment(2)
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{closed_port}")
    with pytest.raises(ValueError, match="nothing answers there"):
        check_environment(3)


def test_times_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PASSERELLE_EXCHANGE_SECONDS", "PASSERELLE_GRACE_SECONDS"):
        monkeypatch.delenv(name, raising=False)
    assert (exchange_seconds(), grace_seconds()) == (300.0, 20.0)
    monkeypatch.setenv("PASSERELLE_EXCHANGE_SECONDS", "1800")
    monkeypatch.setenv("PASSERELLE_GRACE_SECONDS", "2.5")
    assert (exchange_seconds(), grace_seconds()) == (1800.0, 2.5)


@pytest.mark.parametrize("name", ["PASSERELLE_EXCHANGE_SECONDS", "PASSERELLE_GRACE_SECONDS"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "5 min"])
def test_a_time_that_is_none_is_refused_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(
        ValueError, match=rf"{name}={value}: must be a number of seconds above 0; unset, it is"
    ):
        check_environment(4)
