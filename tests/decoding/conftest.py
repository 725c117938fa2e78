"""A trained model, made once for all tests of decoding."""

import pytest

from made_once import made_once
from phrasebook_model import Phrasebook, make_phrasebook, read_phrasebook


@pytest.fixture(scope="session")
def phrasebook(tmp_path_factory: pytest.TempPathFactory) -> Phrasebook:
    return read_phrasebook(made_once(tmp_path_factory, "phrasebook", make_phrasebook))
