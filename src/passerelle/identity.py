"""What a run was made with: code, data, libraries, machine. For reviewers; no result depends on it."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ruamel.yaml import YAML

LIBRARIES = (
    "passerelle",
    "torch",
    "ray",
    "mlflow",
    "dvc",
    "numpy",
    "pyarrow",
    "sentencepiece",
    "safetensors",
    "sacrebleu",
    "rapidfuzz",
)
DVC_VARIABLES = ("DVC_STAGE", "DVC_EXP_NAME", "DVC_EXP_BASELINE_REV")
BUT_RESULTS = (
    ":/",
    ":(top,exclude,glob)**/dvc.lock",
    ":(top,exclude,glob)**/metrics/*.json",
    ":(top,exclude,glob)**/chapter.md",
)
"""Paths that say what code and parameters were: DVC writes the others itself before training begins."""
GIT_SECONDS = 10
MOST_DIFF_CHARACTERS = 500_000


def identity(root: Path) -> dict[str, str]:
    """Git commit, DVC's hashes and experiment, versions and machine, by tag name; unknown ones are absent."""
    return {**_code(root), **_data(Path("dvc.lock")), **_experiment(), **_versions(), **_machine()}


def uncommitted_changes(root: Path) -> str:
    """What differs between the working tree's tracked files and the last commit."""
    changes = _git(root, "diff", "--no-color", "--no-ext-diff", "--binary", "HEAD", "--", *BUT_RESULTS)
    return (changes or "")[:MOST_DIFF_CHARACTERS]


def _code(root: Path) -> dict[str, str]:
    commit = _git(root, "rev-parse", "HEAD")
    if not commit:
        return {}
    is_dirty = bool(_git(root, "status", "--porcelain", "--", *BUT_RESULTS))
    branch = _git(root, "rev-parse", "--abbrev-ref", "HEAD") or ""
    return {
        "mlflow.source.git.commit": commit,
        "git.commit": commit,
        "git.branch": branch,
        "git.dirty": str(is_dirty).lower(),
    }


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints, or None where git or the repository is missing."""
    command = ["git", "-C", str(root), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return result.stdout.rstrip("\n")


def _data(lock: Path) -> dict[str, str]:
    """DVC's hash of every output that stages before this one wrote."""
    if not lock.is_file():
        return {}
    stages = YAML(typ="safe", pure=True).load(lock.read_text(encoding="utf-8")).get("stages", {})
    own = os.environ.get("DVC_STAGE")
    return {
        f"dvc.md5.{output['path']}": str(output["md5"])
        for name, stage in stages.items()
        if name != own
        for output in stage.get("outs", [])
        if "md5" in output and str(output["path"]).startswith("data/")
    }


def _experiment() -> dict[str, str]:
    return {
        name.lower().replace("_", ".", 1): os.environ[name] for name in DVC_VARIABLES if os.environ.get(name)
    }


def _versions() -> dict[str, str]:
    tags = {"version.python": platform.python_version()}
    for library in LIBRARIES:
        try:
            tags[f"version.{library}"] = version(library)
        except PackageNotFoundError:
            continue
    return tags


def _machine() -> dict[str, str]:
    return {
        "machine.platform": platform.platform(),
        "machine.processor": _processor(),
        "machine.cpus": str(os.cpu_count()),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
