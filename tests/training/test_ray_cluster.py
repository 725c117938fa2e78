"""Starting Ray, as far as it goes without Ray: what it says where it cannot."""

from typing import NoReturn

import pytest
import ray

from passerelle.training.ray_cluster import cluster


def test_a_machine_too_busy_to_start_ray_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(*arguments: object, **options: object) -> NoReturn:
        raise Exception("The current node timed out during startup. This could happen for some reasons.")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with (
        pytest.raises(
            TimeoutError, match=r"^Ray did not start: The current node .* once the machine is less"
        ),
        cluster(60.0),
    ):
        pass
