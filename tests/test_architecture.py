"""The rules of the layout: who may import whom, what stays light, how long a file may be."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from source_imports import (
    PACKAGE,
    ROOT,
    import_closure,
    imported_names,
    module_name,
    own_imports,
    packages,
    syntax_tree,
)

MODULES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = sorted((ROOT / "pipeline").glob("*.py"))
LIGHT_STAGES = ("fetch", "prepare", "tokenizer", "shards")
HEAVY = ("torch", "ray", "mlflow", "matplotlib", "pandas", "scipy", "sklearn")

# Folder -> what its files may import of ours (folders, or modules beside them); itself is always allowed.
ALLOWED = {
    "corpus": {"config", "files", "parquet"},
    "data": {"config", "files", "parquet"},
    "nn": set(),
    "training": {"config", "files", "data", "nn", "models", "model_folder", "tracking"},
    "decoding": {"config", "corpus", "data", "nn", "models", "model_folder"},
    "commands": {
        "config",
        "files",
        "corpus",
        "data",
        "decoding",
        "evaluation",
        "model_folder",
        "params_file",
        "recorded_runs",
        "replay",
        "reproduce",
        "run_folder",
        "stages",
        "tracking",
    },
    "evaluation": {
        "config",
        "files",
        "corpus",
        "data",
        "nn",
        "decoding",
        "models",
        "model_folder",
        "identity",
        "lineage",
        "parquet",
    },
}


def part_of(path: Path) -> str:
    """`src/passerelle/data/plan.py` -> `data`; `src/passerelle/files.py` -> `files`."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def files_that_import(package: str) -> set[str]:
    return {str(path.relative_to(PACKAGE)) for path in MODULES if package in packages(path)}


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_point_one_way(folder: str) -> None:
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        parts = {part_of(imported) for imported in own_imports(path)} - {folder}
        assert parts <= ALLOWED[folder], f"{module_name(path)} must not import {parts - ALLOWED[folder]}"


def test_every_folder_has_its_rule() -> None:
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_"} == set(ALLOWED)


def test_nn_imports_torch_alone() -> None:
    for path in sorted((PACKAGE / "nn").glob("*.py")):
        foreign = packages(path) - set(sys.stdlib_module_names) - {"torch", "passerelle"}
        assert not foreign, f"{module_name(path)} must not import {foreign}"


@pytest.mark.parametrize("name", ["config", "files", "parquet", "plain_yaml", "stages"])
def test_the_base_imports_nothing_of_ours(name: str) -> None:
    assert not own_imports(PACKAGE / f"{name}.py")


def test_reading_params_needs_the_table_of_knobs_alone() -> None:
    assert own_imports(PACKAGE / "params_file.py") == {PACKAGE / "config.py", PACKAGE / "plain_yaml.py"}


def test_four_files_import_ray() -> None:
    names = ("cluster", "group", "train", "worker")
    assert files_that_import("ray") == {f"training/ray_{name}.py" for name in names}


def test_three_files_import_mlflow() -> None:
    assert files_that_import("mlflow") == {"mlflow_run.py", "tracking_address.py", "pyfunc_model.py"}


def test_every_imported_library_is_a_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[\[=<>~ ]", entry)[0].lower() for entry in project["dependencies"]}
    imported = {package for path in [*MODULES, *SCRIPTS] for package in packages(path)}
    imported -= {*sys.stdlib_module_names, "passerelle"}
    distributions = packages_distributions()
    assert imported
    for package in imported:
        names = {name.lower() for name in distributions[package]}
        assert names & declared, f"{package} is not in pyproject.toml"


def test_corpus_and_data_import_no_torch() -> None:
    for path in sorted((PACKAGE / "corpus").glob("*.py")):
        assert "torch" not in packages(path), module_name(path)
    assert {name for name in files_that_import("torch") if name.startswith("data/")} <= {"data/batch.py"}


def test_nothing_imports_the_pipeline_or_the_command_line() -> None:
    for path in MODULES:
        names = imported_names(path)
        assert not any(name.split(".")[0] == "pipeline" for name in names), module_name(path)
        assert "passerelle.cli" not in names or path.name == "__main__.py", module_name(path)
        is_command = path.parent.name == "commands" or path.name == "cli.py"
        assert is_command or not any(name.startswith("passerelle.commands") for name in names), module_name(
            path
        )


@pytest.mark.parametrize("stage", LIGHT_STAGES)
def test_a_stage_that_only_reads_text_loads_no_heavy_library(stage: str) -> None:
    script = ROOT / "pipeline" / f"{stage}.py"
    for path in import_closure(script):  # also what a function imports late
        assert path.suffix != ".py" or not packages(path) & set(HEAVY), module_name(path)
    code = (
        f"import runpy, sys; runpy.run_path({str(script)!r}, run_name='imported'); "
        f"print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == []


@pytest.mark.parametrize("path", [*MODULES, *SCRIPTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short_and_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(syntax_tree(path)), "begin the file with a docstring"
    if path != PACKAGE / "config.py":  # the table of all knobs, two lines each
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 250


@pytest.mark.parametrize("path", [*MODULES, *SCRIPTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_function_fits_on_a_screen(path: Path) -> None:
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            assert node.body[-1].end_lineno is not None
            length = node.body[-1].end_lineno - first.lineno + 1  # of the body, without its docstring
            assert length <= 50, f"{node.name}, line {node.lineno}"


def test_a_package_file_holds_a_docstring_alone() -> None:
    for path in PACKAGE.rglob("__init__.py"):  # so no stage in dvc.yaml need list it
        assert len(syntax_tree(path).body) == 1, module_name(path)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_stage_script_has_no_logic_of_its_own(path: Path) -> None:
    tree = syntax_tree(path)
    code = path.read_text(encoding="utf-8").splitlines()[tree.body[1].lineno - 1 :]
    assert len(code) <= 60  # below the docstring, which is the help
    assert {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} == {"main"}
    assert not any(isinstance(node, ast.ClassDef) for node in ast.walk(tree))


def test_no_file_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "util", "helpers", "common", "misc", "core", "base"}
    assert not {path.stem for path in [*MODULES, *SCRIPTS]} & empty
