"""What a worker is given, before it loads torch."""

import os
from pathlib import Path
from typing import cast

import pytest

from passerelle.training import job, ray_worker


@pytest.mark.parametrize("set_by_user", [None, "77"])
def test_a_worker_computes_in_its_environment_but_for_what_the_user_has_set(
    set_by_user: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, default = next(iter(job.COMPUTING.items()))
    monkeypatch.setenv(name, set_by_user or "")
    if set_by_user is None:
        monkeypatch.delenv(name)
    seen: list[str] = []
    monkeypatch.setattr(ray_worker, "train_in_worker", lambda given: seen.append(os.environ[name]))
    job.work(cast(job.Job, None))
    assert seen == [set_by_user or default]
