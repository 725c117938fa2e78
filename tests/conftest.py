"""What several tests share."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the models are tiny, and idle threads of torch spin


@pytest.fixture(scope="session")
def fra_eng_archive() -> Path:
    """The real corpus, where `FRA_ENG_ARCHIVE` names it; tests that need it are skipped elsewhere."""
    name = os.environ.get("FRA_ENG_ARCHIVE")
    if not name or not Path(name).is_file():
        pytest.skip("the fra-eng archive is absent: set FRA_ENG_ARCHIVE to its path")
    return Path(name).resolve()
