"""The raw text of a corpus, wherever it is, verified and kept with its attribution."""

import hashlib
import os
from pathlib import Path

from passerelle.config import CorpusConfig
from passerelle.corpus.archive import unpack_text
from passerelle.corpus.download import DownloadError, download, without_secrets
from passerelle.files import temporary_beside, whole_file

TEXT = "pairs.txt"


def fetch_corpus(config: CorpusConfig, folder: Path) -> None:
    """Write `pairs.txt`, the raw text byte for byte, and `ATTRIBUTION.txt` into `folder`.

    A file is looked for in the environment variable `config.archive_variable`, at `config.path`, then at
    `config.urls`. Each output is written whole or not at all. Raises ValueError where the file found is no
    sentence-pair text or not the expected one, and where none is found: that message names the ways on.
    """
    with whole_file(folder / TEXT) as temporary:
        if config.origin == "phrasebook":
            text_hash = _write_phrasebook(temporary)
            _verify(text_hash, "the phrasebook", config)
        elif archive := _local_file(config):
            text_hash = unpack_text(archive, temporary, config.max_bytes)
            _verify(text_hash, str(archive), config)
        else:
            text_hash = _from_urls(config, temporary)
    with whole_file(folder / "ATTRIBUTION.txt") as temporary:
        lines = (config.name, config.attribution, f"SHA-256 of {TEXT}: {text_hash}")
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _write_phrasebook(destination: Path) -> str:
    from passerelle.corpus.phrasebook import phrasebook_pairs  # only this origin needs it

    text = "".join(f"{source}\t{target}\n" for source, target in phrasebook_pairs()).encode()
    destination.write_bytes(text)
    return hashlib.sha256(text).hexdigest()


def _local_file(config: CorpusConfig) -> Path | None:
    """The file that the environment variable or `config.path` names, or None."""
    if config.archive_variable and (named := os.environ.get(config.archive_variable)):
        path = Path(named).expanduser()
        if not path.is_file():
            raise ValueError(
                f"{config.archive_variable}={named}: no such file (looked for {path.absolute()}); correct "
                "the variable or unset it"
            )
        return path
    if config.path and Path(config.path).exists():
        if not Path(config.path).is_file():
            raise ValueError(f"{config.path}: a folder; corpus.path must name an archive or a text")
        return Path(config.path)
    return None


def _from_urls(config: CorpusConfig, destination: Path) -> str:
    """The hash of the text from the first address that gives it; the text is at `destination`."""
    faults = []
    with temporary_beside(destination.parent / TEXT) as archive:
        for url in config.urls:
            shown = without_secrets(url)
            try:
                download(url, archive, config.max_bytes)
                text_hash = unpack_text(archive, destination, config.max_bytes)
                _verify(text_hash, shown, config)
                return text_hash
            except DownloadError as error:
                faults.append(str(error))
            except ValueError as error:
                faults.append(str(error).replace(str(archive), shown))
    raise ValueError(_not_found(config, faults))


def _verify(text_hash: str, found: str, config: CorpusConfig) -> None:
    if config.sha256 and text_hash != config.sha256:
        raise ValueError(
            f"{found}: the text's SHA-256 is {text_hash}, but corpus.sha256 in params.yaml expects "
            f"{config.sha256}; get the expected file, or set corpus.sha256 to the hash of the one you trust"
        )


def _not_found(config: CorpusConfig, faults: list[str]) -> str:
    variable, path = config.archive_variable, config.path
    tried = [f"{variable} is not set"] if variable else []
    tried += [f"{path} does not exist"] if path else []
    ways = [
        f"set {variable} to the path of the archive" if variable
        else "name an environment variable in corpus.archive_variable and set it to the path of the archive",
        f"put the archive under data/external/ (as {path})" if path
        else "put the archive under data/external/ and name it in corpus.path",
        "run `make demo`, which needs no download",
    ]  # fmt: skip
    return f"corpus {config.name} not found: {'; '.join(tried + faults)}. Ways on: {'; or '.join(ways)}"
