"""Whether a recorded run can be made again here: each link of the chain, found, different, or missing.

The links are those of the run's lineage card (`lineage`): the commit and what was not committed, the parameters,
the raw data, the libraries, the machine. One that is missing stops; one that differs is said, and may change the
last digits of a score. `replay` then makes the run again.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from passerelle.config import Params
from passerelle.files import sha256_of_file
from passerelle.identity import identity
from passerelle.lineage import FORMAT, NAME, identity_sections

DIFF = "code/uncommitted.diff"
"""What was not committed, among the artifacts of a run."""


@dataclass(frozen=True)
class Record:
    """What is kept of a run."""

    run_id: str
    card: Mapping[str, Any]
    """Its lineage card; of a run without one what its tags tell."""
    changes: str
    """The difference between its code and its commit; empty where there is none, or none is kept."""
    faults: Mapping[str, str]
    """Of artifacts that cannot be had, by name, why."""

    @property
    def commit(self) -> str:
        """The git commit of its code; empty where it is not known."""
        return str(self.card.get("code", {}).get("commit", ""))

    @property
    def folder(self) -> str:
        """Of its pipeline, below the project's root."""
        return str(self.card.get("run", {}).get("folder", "."))

    @property
    def variant(self) -> str:
        """The folder, below that of the pipeline, of the variant of the parameters; `.` where there is none."""
        return str(self.card.get("run", {}).get("variant", "."))


@dataclass(frozen=True)
class Link:
    """One thing that making a run again takes."""

    name: str
    state: Literal["found", "differs", "missing"]
    text: str


def record_of(run_id: str, tags: Mapping[str, str], artifact: Callable[[str], Path]) -> Record:
    """The record; artifact gives the file of that name among the run's artifacts, or raises ValueError."""
    texts, faults = {}, {}
    for name in (NAME, DIFF):
        try:
            texts[name] = artifact(name).read_text(encoding="utf-8")
        except ValueError as error:
            faults[name] = str(error)
    card = {**identity_sections(tags), **json.loads(texts.get(NAME, "{}"))}
    changes = texts.get(DIFF, "") if card.get("code", {}).get("dirty") else ""
    return Record(run_id, card, changes, faults)


def links(record: Record, root: Path) -> list[Link]:
    """The links of the chain, in their order; root: the project's folder here, whose commits are looked at."""
    return [
        _lineage(record),
        _commit(record, root),
        _changes(record, root),
        _parameters(record.card.get("parameters", {})),
        _data(record, root),
        *_surroundings(record.card, identity_sections(identity(root))),
    ]


def raw_corpus(record: Record, root: Path) -> Path | None:
    """A local file with the raw sentence pairs, where there is one; it may be an archive."""
    corpus, folder = record.card.get("parameters", {}).get("corpus", {}), root / record.folder
    if named := os.environ.get(corpus.get("archive_variable") or ""):
        return Path(named).expanduser().resolve()
    if corpus.get("path") and (folder / corpus["path"]).is_file():
        return (folder / corpus["path"]).resolve()
    text = folder / "data" / "raw" / "pairs.txt"
    expected = corpus.get("sha256")
    return text.resolve() if text.is_file() and expected in (None, sha256_of_file(text)) else None


def git(folder: Path, *arguments: str, text: str = "", index: Path | None = None) -> str:
    """What git prints in folder; text goes to its input. ValueError with git's own words where it fails."""
    environment = {**os.environ, **({"GIT_INDEX_FILE": str(index)} if index else {})}
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, env=environment
        )
    except FileNotFoundError:
        raise ValueError("git is not installed; a run is made again from its commit") from None
    if done.returncode:
        raise ValueError(f"git {arguments[0]}: {' '.join(done.stderr.split()) or done.returncode}")
    return done.stdout


def applied(changes: str) -> tuple[tuple[str, ...], str]:
    """Arguments and input for git that apply the recorded changes to the very commit that they were made on.

    Blank lines at the end of the record may be lost, and then the last lines that it names need not end the file.
    """
    arguments = ("apply", "--recount", "--unidiff-zero", "--whitespace=nowarn", "-")
    return arguments, changes if changes.endswith("\n") else f"{changes}\n"


def _lineage(record: Record) -> Link:
    card = record.card
    if "format" not in card:
        why = record.faults.get(NAME, "it is empty")
        return Link("lineage", "missing", f"not evaluated, or by a version that kept none: {why}")
    if card["format"] != FORMAT:
        return Link(
            "lineage", "missing", f"{NAME} is of format {card['format']}, but this version reads {FORMAT}"
        )
    return Link("lineage", "found", f"scores of {card['time']['date']}")


def _commit(record: Record, root: Path) -> Link:
    if not record.commit:
        return Link("commit", "missing", "none is recorded: the run was made outside a git repository")
    try:
        git(root, "cat-file", "-e", f"{record.commit}^{{commit}}")
    except ValueError:
        return Link(
            "commit", "missing", f"{record.commit} is not in {root}; fetch it from where the run was made"
        )
    return Link("commit", "found", record.commit)


def _changes(record: Record, root: Path) -> Link:
    if not record.card.get("code", {}).get("dirty"):
        return Link("changes", "found", "none, the code was committed")
    if not record.changes:
        return Link(
            "changes",
            "differs",
            f"the code was not all committed, and no {DIFF} is kept (files new to git never are); "
            "taken is what was committed",
        )
    arguments, text = applied(record.changes)
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        try:
            git(root, "read-tree", record.commit or "HEAD", index=index)
            git(root, arguments[0], "--cached", "--check", *arguments[1:], text=text, index=index)
        except ValueError as error:
            return Link("changes", "missing", f"{DIFF} cannot be applied to the commit: {error}")
    return Link("changes", "found", f"in {DIFF}, files: {record.changes.count('diff --git')}")


def _parameters(sections: Mapping[str, Any]) -> Link:
    if missing := [name for name in Params.model_fields if name != "root" and name not in sections]:
        return Link(
            "parameters", "differs", f"not recorded: {', '.join(missing)}; those of the commit are taken"
        )
    return Link("parameters", "found", f"{len(sections)} sections")


def _data(record: Record, root: Path) -> Link:
    corpus = record.card.get("parameters", {}).get("corpus")
    if corpus is None:
        return Link("data", "differs", "the corpus is not recorded; that of the commit is taken")
    if corpus["origin"] == "phrasebook":
        return Link("data", "found", "the phrasebook, which comes with the code")
    if (path := raw_corpus(record, root)) and path.is_file():
        return Link("data", "found", f"{corpus['name']} at {path}")
    if corpus.get("urls") and not path:
        return Link("data", "found", f"{corpus['name']}, to be downloaded from {corpus['urls'][0]}")
    variable = corpus.get("archive_variable")
    way = (
        f"set {variable} to its archive" if variable else f"put it at {root / record.folder / corpus['path']}"
    )
    return Link("data", "missing", f"the raw sentence pairs of {corpus['name']} are not here; {way}")


def _surroundings(card: Mapping[str, Any], here: Mapping[str, Mapping[str, str]]) -> Iterator[Link]:
    """Libraries one by one where they differ, and the processor."""
    versions = here.get("versions", {})
    recorded = {name: text for name, text in card.get("versions", {}).items() if name != "passerelle"}
    others = {name: text for name, text in recorded.items() if versions.get(name) != text}
    for name, text in others.items():
        yield Link("library", "differs", f"{name} {text} then, {versions.get(name, 'none')} here")
    if not others:
        yield Link("libraries", "found", f"the same {len(recorded)} versions")
    then, now = (side.get("machine", {}).get("processor", "unknown") for side in (card, here))
    if then == now:
        yield Link("machine", "found", now)
    else:
        yield Link("machine", "differs", f"{then} then, {now} here: sums are rounded otherwise")
