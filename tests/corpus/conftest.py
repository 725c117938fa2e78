"""The phrasebook, made once for the tests that read it."""

import pytest

from passerelle.corpus.phrasebook import phrasebook_pairs


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    return phrasebook_pairs()


@pytest.fixture(scope="session")
def french(pairs: list[tuple[str, str]]) -> list[str]:
    return [sentence for _, sentence in pairs]
