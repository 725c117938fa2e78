"""Translations of a test set by a name that a user gives: a path, a revision, an experiment, a run."""

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from passerelle.evaluation.translated import FILE, Translated, parse_translated

RUN_NAME = re.compile("[0-9a-f]{16}|[0-9a-f]{32}")
"""A fingerprint, or an id of MLflow's."""


def find_translated(name: str, evaluation: Path) -> Translated:
    """The first of these that there is: the file; the folder's translations.jsonl; the Git revision or DVC experiment
    whose `evaluation` DVC keeps; the MLflow run with that id or fingerprint.

    Raises ValueError where there is none, or it has no usable translations.
    """
    for path in (Path(name), Path(name, FILE)):
        if path.is_file():
            return parse_translated(path.read_bytes(), str(path))
    found = _of_revision(name, evaluation) or _of_run(name)
    if found is None:
        raise ValueError(
            f"{name}: neither a file, nor a folder with {FILE}, nor a revision or experiment of this repository, "
            "nor the id or fingerprint of an MLflow run"
        )
    return found


def _of_revision(name: str, evaluation: Path) -> Translated | None:
    """None where this is no DVC repository, or it has no such revision."""
    if not name:
        return None
    from dvc.api import DVCFileSystem
    from dvc.exceptions import NotDvcRepoError
    from dvc.repo import Repo
    from dvc.scm import SCMError

    try:
        root = Repo.find_root()
    except NotDvcRepoError:
        return None
    path = Path(os.path.relpath(evaluation / FILE, root)).as_posix()
    files = DVCFileSystem(root, rev=name)
    try:
        place = f"{name} (commit {files.repo.get_rev()[:7]}, {path})"
        content = files.cat_file(f"/{path}")
    except SCMError:
        return None
    except Exception as error:  # each kind of storage has errors of its own
        raise ValueError(
            f"{name}: this revision has no {path} that DVC can reach ({' '.join(str(error).split())[:200]}); was "
            "stage evaluate run for it, and is its output in the cache or the remote?"
        ) from None
    finally:
        files.close()
    return parse_translated(content, place)


def _of_run(name: str) -> Translated | None:
    """None where the name is none that a run can have."""
    if not RUN_NAME.fullmatch(name):
        return None
    from passerelle.recorded_runs import artifact_file, read_run

    run_id = read_run(name).run_id
    with TemporaryDirectory() as folder:
        content = artifact_file(run_id, f"evaluation/{FILE}", Path(folder)).read_bytes()
    return parse_translated(content, f"MLflow run {run_id}")
