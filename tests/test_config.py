"""What `params.yaml` may say, and what a stage and a variant receive of it; `test_params_faults` has the faults."""

import re
from pathlib import Path

import pytest
from pydantic_core import PydanticUndefined

from params_files import read_yaml, write_params, write_variant
from passerelle.config import (
    EvaluateParams,
    FetchParams,
    Params,
    PrepareParams,
    Section,
    ShardsParams,
    TokenizerParams,
    TrainParams,
)
from passerelle.params_file import load_params

ROOT = Path(__file__).parents[1]
PARAMS_FILES = [
    path
    for path in [ROOT / "params.yaml", *sorted(ROOT.glob("examples/*/params.yaml"))]
    if re.search(
        "^root:", path.read_text(encoding="utf-8"), re.MULTILINE
    )  # others have parameters of their own
]
VARIANTS = [path for file in PARAMS_FILES[1:] for path in sorted(file.parent.glob("*/params.yaml"))]


@pytest.mark.parametrize("path", PARAMS_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_projects_own_params_files_are_right(path: Path) -> None:
    params = load_params(Params, path)
    assert (path.parent / params.root).resolve() == ROOT


@pytest.mark.parametrize("path", VARIANTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_projects_own_variants_are_right(path: Path) -> None:
    params = load_params(Params, path)
    for name, values in read_yaml(path).items():
        for key, value in values.items():
            assert getattr(getattr(params, name), key) == value


def test_widths_of_heads_bind_the_transformer_alone(tmp_path: Path) -> None:
    changes = [("model.name", "bahdanau"), ("model.d_model", 15), ("model.num_heads", 4)]
    params = load_params(TrainParams, write_params(tmp_path / "params.yaml", *changes))
    assert params.model.d_model == 15


def test_a_variant_replaces_values_of_the_file_above(tmp_path: Path) -> None:
    path = write_variant(tmp_path, "model: {d_model: 16}\ntraining: {max_steps: 700, patience: 3}\n")
    whole, variant = load_params(Params, tmp_path / "params.yaml"), load_params(Params, path)
    changed = {"model": {"d_model": 16}, "training": {"max_steps": 700, "patience": 3}}
    expected = whole.model_dump()
    for section, values in changed.items():
        expected[section] |= values
    assert variant.model_dump() == expected
    assert load_params(TrainParams, path).training.seed == 5


def test_a_variant_is_found_from_its_own_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_variant(tmp_path, "model: {d_model: 16}\n")
    monkeypatch.chdir(path.parent)
    assert load_params(TrainParams).model.d_model == 16


def test_a_stage_receives_its_own_sections_alone() -> None:
    path = ROOT / "params.yaml"
    whole = load_params(Params, path)
    for stage in (FetchParams, PrepareParams, TokenizerParams, ShardsParams, TrainParams, EvaluateParams):
        params = load_params(stage, path)
        assert set(params.model_fields_set) == set(stage.model_fields)
        assert all(getattr(params, name) == getattr(whole, name) for name in stage.model_fields)


def test_params_cannot_be_changed() -> None:
    params = load_params(TrainParams, ROOT / "params.yaml")
    with pytest.raises(ValueError, match=r"frozen"):
        params.training.seed = 1  # type: ignore[misc]


def sections_of(params: type[Section]) -> dict[str, type[Section]]:
    return {
        name: field.annotation
        for name, field in params.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
    }


def test_params_yaml_names_every_knob() -> None:
    content = read_yaml(ROOT / "params.yaml")
    for name, section in sections_of(Params).items():
        assert list(content[name]) == list(section.model_fields), name


def test_defaults_and_params_yaml_agree() -> None:
    content = read_yaml(ROOT / "params.yaml")
    for name, section in sections_of(Params).items():
        if name in ("corpus", "evaluation"):  # their addresses and sentences belong to one corpus
            continue
        for key, field in section.model_fields.items():
            assert field.default is not PydanticUndefined, f"{name}.{key}"
            assert content[name][key] == field.default, f"{name}.{key}"
    for name, key in (("corpus", "max_bytes"), ("evaluation", "bootstrap_samples"), ("evaluation", "seed")):
        assert content[name][key] == sections_of(Params)[name].model_fields[key].default


def test_every_knob_has_a_comment_and_a_docstring() -> None:
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    knobs = re.findall(r"^  ([a-z_0-9]+):(.*)$", text, re.MULTILINE)
    assert len(knobs) > 40
    for knob, rest in knobs:
        assert "#" in rest, f"{knob} has no comment"
    for name, section in sections_of(Params).items():
        for key, field in section.model_fields.items():
            assert field.description, f"{name}.{key} has no docstring"
