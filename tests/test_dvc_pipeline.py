"""`dvc.yaml` says the truth: each stage depends on the code, parameters and files that it uses, no others.

So does that of an example with stages of its own. Where a list differs from the code, the failing test prints the
lines to paste. A stage that runs once for each variant of its parameters is a DVC matrix of their folders.
"""

import ast
import subprocess
from pathlib import Path

import pytest

from dvc_stages import (
    CORPUS_STAGES,
    STAGES,
    TEXTBOOK,
    VARIANT,
    content_of,
    in_section,
    is_code,
    names,
    outputs,
    read_stages,
    script_of,
    variants,
    without_variant,
    yaml,
)
from passerelle import config
from source_imports import ROOT, import_closure, run_nodes, syntax_tree

COPIES = [
    path.parent
    for path in sorted(ROOT.glob("examples/*/params.yaml"))
    if "root" in yaml.load(path.read_text(encoding="utf-8")) and path.parent != TEXTBOOK
]
"""Examples that are other parameters for the root's pipeline."""
CASES = [(ROOT, stage) for stage in STAGES] + [(TEXTBOOK, stage) for stage in read_stages(TEXTBOOK)]
each_stage = pytest.mark.parametrize(
    ("folder", "stage"), CASES, ids=[f"{folder.name}-{stage}" for folder, stage in CASES]
)


@each_stage
def test_a_stage_depends_on_the_code_it_imports(folder: Path, stage: str) -> None:
    name, script = script_of(folder, stage)
    lines = [name, *(f"${{root}}/{path.relative_to(ROOT)}" for path in sorted(import_closure(script)))]
    listed = [dep for dep in content_of(folder, stage)["deps"] if is_code(dep)]
    assert listed == lines, f"{stage}.deps must begin with\n" + "\n".join(f"      - {line}" for line in lines)


@each_stage
def test_a_stage_depends_on_the_parameters_it_receives(folder: Path, stage: str) -> None:
    """The script calls `load_params(TrainParams)` or the like; the fields of that class are the list.

    Of a variant's file it names the same sections, as far as a variant may change them, or the whole file.
    """
    calls = [
        ast.unparse(node.args[0])
        for node in run_nodes(syntax_tree(script_of(folder, stage)[1]))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("load_params")
    ]
    assert len(calls) == 1
    sections = list(getattr(config, calls[0]).model_fields)
    listed = content_of(folder, stage)["params"]
    assert [entry for entry in listed if isinstance(entry, str)] == sections
    files = {name: keys for entry in listed if not isinstance(entry, str) for name, keys in entry.items()}
    read = {without_variant(folder, path) for path in names(content_of(folder, stage)["deps"])}
    if "matrix" in content_of(folder, stage):
        assert set(files) == {f"{VARIANT}params.yaml"}
    elif "model" in read:  # of the variants, which it names one by one
        assert set(files) == {f"{name}/params.yaml" for name in variants(folder)}
    else:
        assert not files
    for keys in files.values():
        assert keys in (None, [section for section in sections if section in config.VARIANT_SECTIONS])


@each_stage
def test_a_stage_names_the_files_it_reads_and_writes(folder: Path, stage: str) -> None:
    """Every path written in the script lies in a dependency or an output of its stage, and none is idle."""
    content = content_of(folder, stage)
    paths = [dep for dep in content["deps"] if not is_code(dep)] + outputs(content)
    known = {without_variant(folder, path) for path in paths}
    outs = [out for other in read_stages(folder).values() for out in outputs(other)]
    folders = {without_variant(folder, out).split("/")[0] for out in outs}
    used = {
        node.value.rstrip("/")
        for node in run_nodes(syntax_tree(script_of(folder, stage)[1]))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value.split("/")[0] in folders and " " not in node.value
    }
    for path in used:
        assert any(in_section(path, entry) or in_section(entry, path) for entry in known), path
    for entry in known:
        assert any(in_section(path, entry) or in_section(entry, path) for path in used), f"{entry} is unused"


@each_stage
def test_a_stage_reads_what_another_has_written(folder: Path, stage: str) -> None:
    outs = [out for other in read_stages(folder).values() for out in outputs(other)]
    written = outs + [out.replace(VARIANT, f"{name}/") for out in outs for name in variants(folder)]
    for dep in content_of(folder, stage)["deps"]:
        assert is_code(dep) or any(in_section(dep, out) for out in written), dep


def test_every_script_is_a_stage() -> None:
    assert {path.stem for path in (ROOT / "pipeline").glob("*.py")} == set(STAGES)
    for stage, content in STAGES.items():
        assert content["cmd"] == f"python ${{root}}/pipeline/{stage}.py"


def test_the_textbook_has_the_stages_of_the_root_and_trains_each_variant() -> None:
    stages = read_stages(TEXTBOOK)
    assert list(stages) == [*STAGES, "chapter"]
    assert {path.name for path in TEXTBOOK.glob("*.py")} == {"chapter.py"}
    for stage, content in STAGES.items():
        if stage in CORPUS_STAGES:
            assert stages[stage] == content
        else:
            assert sorted(stages[stage]["matrix"]["variant"]) == variants(TEXTBOOK)
            assert stages[stage]["cmd"] == f"{content['cmd']} --variant ${{item.variant}}"
            assert stages[stage]["desc"] == content["desc"]
            assert all(out.startswith(VARIANT) for out in outputs(stages[stage]))
            assert [without_variant(TEXTBOOK, out) for out in outputs(stages[stage])] == outputs(content)


def test_a_stage_is_described_by_a_sentence() -> None:
    assert all(content_of(folder, stage)["desc"].endswith(".") for folder, stage in CASES)


@pytest.mark.parametrize("folder", [ROOT, TEXTBOOK], ids=lambda path: path.name)
def test_what_is_drawn_is_an_output_and_not_within_one(folder: Path) -> None:
    """`dvc exp run` of any pipeline looks into the drawn folders of all, and fails where one was never made here."""
    content = yaml.load((folder / "dvc.yaml").read_text(encoding="utf-8"))
    outs = {out for stage in content["stages"].values() for out in outputs(stage)}
    outs |= {out.replace(VARIANT, f"{name}/") for out in outs for name in variants(folder)}
    for entry in content["plots"]:
        files = [entry] if isinstance(entry, str) else [*next(iter(entry.values()))["x"]]
        assert isinstance(entry, str) or files == [*next(iter(entry.values()))["y"]]
        assert outs.issuperset(files), entry


def test_every_section_belongs_to_a_stage() -> None:
    listed = {section for stage in STAGES.values() for section in stage["params"]}
    assert listed == set(config.Params.model_fields) - {"root"}


def test_metrics_go_into_git_and_large_outputs_do_not() -> None:
    for folder, stage in CASES:
        content = content_of(folder, stage)
        for entry in content.get("metrics", []):
            assert next(iter(entry.values())) == {"cache": False}, stage
        for entry in content["outs"]:
            is_large = isinstance(entry, str)  # else with `cache: false`, a report
            path = next(iter(names([entry]))).replace(VARIANT, "transformer/")
            ignored = subprocess.run(["git", "check-ignore", "-q", f"{path}/x"], cwd=folder, check=False)
            assert (ignored.returncode == 0) == is_large, f"{path} and .gitignore"


@pytest.mark.parametrize("folder", COPIES, ids=lambda path: path.name)
def test_an_example_without_stages_of_its_own_has_the_pipeline_of_the_root(folder: Path) -> None:
    """A copy, not a link: DVC cannot follow links in earlier commits, and then no comparison works."""
    copy = folder / "dvc.yaml"
    assert not copy.is_symlink()
    assert copy.read_bytes() == (ROOT / "dvc.yaml").read_bytes(), f"cp dvc.yaml {copy.relative_to(ROOT)}"
