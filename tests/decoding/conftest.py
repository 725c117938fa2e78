"""A trained model, made once for all tests of decoding."""

import pytest

from phrasebook_model import Phrasebook, make_phrasebook


@pytest.fixture(scope="session")
def phrasebook(tmp_path_factory: pytest.TempPathFactory) -> Phrasebook:
    return make_phrasebook(tmp_path_factory.mktemp("phrasebook"))
