"""Where the corpus is looked for, how it is verified, and what is said when it is nowhere."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from passerelle.config import CorpusConfig
from passerelle.corpus import fetch
from passerelle.corpus.download import DownloadError
from passerelle.corpus.fetch import fetch_corpus

TEXT = b"Go.\tVa !\nHi.\tSalut !"
OTHER = b"Run.\tCours !\n"
HASH = hashlib.sha256(TEXT).hexdigest()
VARIABLE = "PASSERELLE_TEST_ARCHIVE"


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)


def config(**changes: object) -> CorpusConfig:
    fields = {
        "name": "small",
        "origin": "file",
        "archive_variable": VARIABLE,
        "path": "external/small.zip",
        "attribution": "by Tom, CC BY",
        **changes,
    }
    return CorpusConfig.model_validate(fields)


def write_zip(path: Path, text: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("small/pairs.txt", text)


def fetched(corpus: CorpusConfig) -> bytes:
    fetch_corpus(corpus, Path("raw"))
    assert sorted(path.name for path in Path("raw").iterdir()) == ["ATTRIBUTION.txt", "pairs.txt"]
    return Path("raw/pairs.txt").read_bytes()


def given_urls(monkeypatch: pytest.MonkeyPatch, answers: dict[str, bytes]) -> None:
    def answer(url: str, destination: Path, max_bytes: int) -> None:
        if url not in answers:
            raise DownloadError(f"{url}: the server answered 404 Not Found")
        destination.write_bytes(answers[url])

    monkeypatch.setattr(fetch, "download", answer)


def test_the_variable_comes_before_the_path_and_the_path_before_the_urls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given_urls(monkeypatch, {"http://x/a": TEXT})
    corpus = config(urls=["http://x/a"])
    assert fetched(corpus) == TEXT
    write_zip(Path("external/small.zip"), OTHER)
    assert fetched(corpus) == OTHER
    Path("named.tsv").write_bytes(TEXT + b"\n")
    monkeypatch.setenv(VARIABLE, "named.tsv")
    assert fetched(corpus) == TEXT + b"\n"


def test_the_attribution_stands_beside_the_text_with_its_hash() -> None:
    write_zip(Path("external/small.zip"), TEXT)
    fetched(config(sha256=HASH))
    attribution = Path("raw/ATTRIBUTION.txt").read_text()
    assert attribution == f"small\nby Tom, CC BY\nSHA-256 of pairs.txt: {HASH}\n"


def test_another_text_than_the_expected_one_is_refused_and_leaves_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_zip(Path("external/small.zip"), TEXT)
    fetched(config(sha256=HASH))
    write_zip(Path("external/small.zip"), OTHER)
    other_hash = hashlib.sha256(OTHER).hexdigest()
    message = (
        rf"external/small\.zip: the text's SHA-256 is {other_hash}, but corpus\.sha256 .* expects {HASH}; "
    )
    with pytest.raises(ValueError, match=message):
        fetch_corpus(config(sha256=HASH), Path("raw"))
    assert Path("raw/pairs.txt").read_bytes() == TEXT
    assert len(list(Path("raw").iterdir())) == 2


def test_an_address_that_gives_something_else_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"http://x/a": b"<html>log in</html>", "http://x/b": OTHER, "http://x/c": TEXT}
    given_urls(monkeypatch, answers)
    assert fetched(config(urls=["http://x/0", *answers], sha256=HASH)) == TEXT


def test_a_corpus_that_is_nowhere_gives_the_ways_on(monkeypatch: pytest.MonkeyPatch) -> None:
    given_urls(monkeypatch, {"http://${CORPUS_USER}:${CORPUS_PASSWORD}@x/b": b"<html>log in</html>"})
    with pytest.raises(ValueError, match=r"^corpus small not found: ") as raised:
        fetch_corpus(config(urls=["http://x/a", "http://${CORPUS_USER}:${CORPUS_PASSWORD}@x/b"]), Path("raw"))
    message = str(raised.value)
    assert (
        f"{VARIABLE} is not set; external/small.zip does not exist; http://x/a: the server answered 404"
        in message
    )
    assert "http://x/b: an HTML page" in message
    assert "CORPUS_PASSWORD" not in message
    assert (
        f"Ways on: set {VARIABLE} to the path of the archive; or put the archive under data/external/"
        in message
    )
    assert "(as external/small.zip); or run `make demo`" in message
    assert "\n" not in message
    assert not Path("raw/pairs.txt").exists()


def test_the_ways_on_name_the_settings_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    given_urls(monkeypatch, {})
    with pytest.raises(
        ValueError, match=r"name an environment variable in corpus\.archive_variable and set it"
    ):
        fetch_corpus(config(archive_variable=None, path=None, urls=["http://x/a"]), Path("raw"))


def test_a_variable_that_names_no_file_is_a_fault_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    write_zip(Path("external/small.zip"), TEXT)
    monkeypatch.setenv(VARIABLE, "absent.zip")
    with pytest.raises(
        ValueError, match=rf"{VARIABLE}=absent\.zip: no such file \(looked for /.*/absent\.zip\)"
    ):
        fetch_corpus(config(), Path("raw"))


def test_a_path_that_is_a_folder_is_refused() -> None:
    Path("external/small.zip").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"external/small\.zip: a folder; corpus\.path must name"):
        fetch_corpus(config(), Path("raw"))


def test_the_phrasebook_is_written_as_a_text_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    from passerelle.corpus import phrasebook

    monkeypatch.setattr(phrasebook, "phrasebook_pairs", lambda: [("Go.", "Va !"), ("Hé.", "Hé.")])
    assert fetched(config(origin="phrasebook")) == "Go.\tVa !\nHé.\tHé.\n".encode()
