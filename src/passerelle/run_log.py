"""What stages record of a run, as plain operations; `tracking` carries them out."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from passerelle.config import EvaluateParams, TrainParams
from passerelle.data.manifest import read_manifest
from passerelle.files import sha256_of_file, sha256_of_tree
from passerelle.identity import identity, uncommitted_changes
from passerelle.sending import Sender

LONGEST_PARAM = 500
COUNTS = ("rows", "source_tokens", "target_tokens", "source_truncated", "target_truncated")
"""What the manifest of shards says of their size."""
MOST_SECONDS = 120.0
"""That a stage whose work is done waits for MLflow, at most; what is not sent by then is kept."""
LAST_SECONDS = 5.0
"""The same for a stage that fails or is stopped."""


class RunLog:
    """A run being recorded. Methods return at once and never raise.

    A context: leaving it ends the run, with a status that tells how it went.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def __enter__(self) -> Self:
        self._send("status", status="RUNNING", milliseconds=_milliseconds())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            status, seconds = "FINISHED", MOST_SECONDS
        else:
            status, seconds = "FAILED" if issubclass(kind, Exception) else "KILLED", LAST_SECONDS
        self._send("status", status=status, milliseconds=_milliseconds())
        self._sender.close(seconds)

    def log_params(self, values: Mapping[str, Any]) -> None:
        """Nested parameters, as `section.key`. One that the run holds with another value becomes a tag."""
        self._send("params", values=dict(flattened(values)))

    def log_tags(self, values: Mapping[str, str]) -> None:
        """Facts that may change when a stage is repeated."""
        self._send("tags", values=dict(values))

    def log_rows(self, rows: Sequence[Mapping[str, float]]) -> None:
        """Curves: rows of numbers with their `step`; steps that the run holds already are left out."""
        self._send("rows", rows=[dict(row) for row in rows], milliseconds=_milliseconds())

    def log_metrics(self, values: Mapping[str, float]) -> None:
        """Single numbers: scores, totals."""
        self._send("metrics", values=dict(values), milliseconds=_milliseconds())

    def log_dataset(self, context: str, path: Path, digest: str, counts: Mapping[str, float]) -> None:
        """Data used for `context` (training, validation, test), named by the hash of its content."""
        self._send("dataset", context=context, path=path.as_posix(), digest=digest, counts=dict(counts))

    def log_files(self, path: Path, folder: str) -> None:
        """A file, or all files below a folder, as artifacts in `folder`."""
        self._send("files", path=str(path.resolve()), folder=folder, sha256=sha256_of_tree(path))

    def log_text(self, text: str, name: str) -> None:
        """A text as an artifact."""
        self._send("text", text=text, name=name)

    def log_model(self, model_folder: Path, sentences: Sequence[str]) -> None:
        """The translator as an MLflow model (pyfunc from code, no pickle); `sentences` are its example."""
        path, sha256 = str(model_folder.resolve()), sha256_of_tree(model_folder)
        self._send("model", path=path, sentences=list(sentences), sha256=sha256)

    def watch_machine(self) -> None:
        """Record use of processors, memory, disk and network, every 10 s, until the run ends."""
        self._sender.send({"what": "watch"}, is_kept=False)

    def drain(self, seconds: float) -> None:
        """Wait until all is sent or kept, at most so many seconds."""
        self._sender.drain(seconds)

    def _send(self, what: str, **arguments: Any) -> None:
        self._sender.send({"what": what, **arguments})


def log_training_inputs(log: RunLog, params: TrainParams, shards: Path, root: Path) -> None:
    """Parameters, code, machine and data of a training run."""
    log.watch_machine()
    log.log_params(params.model_dump())
    log.log_tags(identity(root))
    if changes := uncommitted_changes(root):
        log.log_text(changes, "code/uncommitted.diff")
    for split, context in (("train", "training"), ("valid", "validation")):
        manifest = read_manifest(shards / split)
        counts = {name: manifest[name] for name in COUNTS}
        log.log_dataset(context, shards / split, manifest["content_sha256"], counts)


def log_training_results(
    log: RunLog,
    metrics: Mapping[str, float],
    history: Sequence[Mapping[str, float]],
    *,
    model_folder: Path,
    plots: Sequence[Path],
    examples: Sequence[str],
) -> None:
    """What training measured and made: rows of curves still missing, totals, plots, the model."""
    log.log_rows(history)
    log.log_metrics({f"training.{name}": value for name, value in metrics.items()})
    for plot in plots:
        log.log_files(plot, "plots")
    log.log_model(model_folder, examples)


def log_evaluation(
    log: RunLog,
    params: EvaluateParams,
    *,
    test: Path,
    metrics: Mapping[str, float],
    leaks: Mapping[str, float],
    details: Mapping[str, Mapping[str, Mapping[str, float]]],
    signatures: Mapping[str, str],
    speed: Mapping[str, float],
    folder: Path,
    repository: Path,
) -> None:
    """What an evaluation measured and wrote, and the code's uncommitted changes, which its lineage card speaks of.

    details: kind -> row -> name -> number.
    """
    if changes := uncommitted_changes(repository):
        log.log_text(changes, "code/uncommitted.diff")
    log.log_params(params.model_dump())
    log.log_dataset("test", test, sha256_of_file(test), {"rows": metrics["sentences"]})
    log.log_metrics({f"test.{name}": value for name, value in metrics.items()})
    log.log_metrics({f"leaks.{name}": value for name, value in leaks.items()})
    log.log_metrics(
        {
            f"{kind}.{row}.{name}": value
            for kind, rows in details.items()
            for row, numbers in rows.items()
            for name, value in numbers.items()
        }
    )
    log.log_metrics({f"speed.{name}": value for name, value in speed.items()})
    log.log_tags({f"signature.{name}": text for name, text in signatures.items()})
    log.log_files(folder, "evaluation")


def flattened(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """`section.key` and value as text; a long value is cut, and says so."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{key}.")
        else:
            text = str(value)
            note = f"... (cut, {len(text)} characters)"
            is_short = len(text) <= LONGEST_PARAM
            yield f"{prefix}{key}", text if is_short else text[: LONGEST_PARAM - len(note)] + note


def _milliseconds() -> int:
    return int(time.time() * 1000)
