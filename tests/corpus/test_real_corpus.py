"""The real fra-eng corpus: counts, and a proof that the split does not leak."""

import hashlib
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from passerelle.config import CleaningConfig, CorpusConfig, LanguagesConfig, SplitConfig
from passerelle.corpus.fetch import fetch_corpus
from passerelle.corpus.prepare import prepare_corpus

SIDES = ("train", "valid", "test")
TEXT_HASH = "0bb85dbaa1c896844649094d7eaf2e34bee34e84fe362b26ce7e8f2e12aae104"


def prepare(folder: Path, name: str) -> dict[str, Any]:
    return prepare_corpus(
        folder / "pairs.txt", folder / name, LanguagesConfig(), CleaningConfig(), SplitConfig()
    )


@pytest.fixture(scope="module")
def prepared(fra_eng_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("fra-eng")
    config = CorpusConfig(
        name="fra-eng", origin="file", path=str(fra_eng_archive), sha256=TEXT_HASH, attribution="Tatoeba"
    )
    fetch_corpus(config, folder)
    return folder, prepare(folder, "prepared")


def sentences(folder: Path, side: str) -> list[tuple[str, list[str]]]:
    table = pq.read_table(folder / "prepared" / f"{side}.parquet").to_pydict()
    if side == "train":
        return [(source, [target]) for source, target in zip(table["source"], table["target"], strict=True)]
    return list(zip(table["source"], table["references"], strict=True))


def test_the_counts_add_up_and_are_those_of_the_corpus(prepared: tuple[Path, dict[str, Any]]) -> None:
    folder, counts = prepared
    assert counts["read"] == 167_130
    assert counts["kept"] + counts["rejected"]["total"] == counts["read"]
    assert sum(counts["rejected"].values()) == 2 * counts["rejected"]["total"]
    assert (
        counts["rejected"]["total"] == pq.read_metadata(folder / "prepared/rejected.parquet").num_rows < 500
    )
    assert sum(counts[side]["references"] for side in SIDES) == counts["kept"]
    assert counts["largest_group"] == 96
    for side in SIDES:
        pairs = sentences(folder, side)
        assert counts[side]["rows"] == len(pairs)
        assert counts[side]["sentences"] == len({source for source, _ in pairs})
        assert counts[side]["references"] == sum(len(set(references)) for _, references in pairs)


def test_valid_and_test_have_about_two_thousand_sentences(prepared: tuple[Path, dict[str, Any]]) -> None:
    for side in ("valid", "test"):
        assert prepared[1][side]["rows"] == prepared[1][side]["sentences"]
        assert prepared[1][side]["sentences"] == pytest.approx(2000, rel=0.1)


@pytest.mark.parametrize("replacement", ["", " "])
@pytest.mark.parametrize("language", ["English", "French"])
def test_no_sentence_is_on_two_sides(
    prepared: tuple[Path, dict[str, Any]], language: str, replacement: str
) -> None:
    side_of: dict[str, str] = {}
    for side in SIDES:
        for source, references in sentences(prepared[0], side):
            for text in [source] if language == "English" else references:
                plain = " ".join(re.sub(r"[^\w\s]", replacement, text.casefold()).split())
                assert side_of.setdefault(plain, side) == side, text
    assert len(side_of) > 100_000


def test_valid_and_test_hold_every_translation_of_their_sentences(
    prepared: tuple[Path, dict[str, Any]],
) -> None:
    folder, _ = prepared
    versions: dict[str, set[str]] = {}
    for line in (folder / "pairs.txt").read_text(encoding="utf-8").splitlines():
        source, target = line.split("\t")
        versions.setdefault(source, set()).add(re.sub(r"\W", "", target))
    checked = 0
    for side in ("valid", "test"):
        for source, references in sentences(folder, side):
            if source in versions:
                checked += 1
                assert versions[source] <= {re.sub(r"\W", "", text) for text in references}, source
    assert checked > 3900


def test_the_text_has_no_odd_space_quote_or_french_spacing(prepared: tuple[Path, dict[str, Any]]) -> None:
    odd = re.compile(r"[\u00a0\u2009\u202f\u200b\u00ad’‘“”…\u0400-\u04ff]|^\s|\s$|\s\s|[^\S ]")
    for side in SIDES:
        for source, references in sentences(prepared[0], side):
            assert not [text for text in (source, *references) if odd.search(text)]
            assert not re.search(r" [?!;]", source)
            assert not [text for text in references if re.search(r"[^\s?!][?!]|[^\s\d:]:|\S;|«\S|\S»", text)]


def test_a_second_run_gives_the_same_bytes(prepared: tuple[Path, dict[str, Any]]) -> None:
    folder, counts = prepared
    assert prepare(folder, "again") == counts
    hashes = [
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (folder / name).iterdir()}
        for name in ("prepared", "again")
    ]
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) == 4
