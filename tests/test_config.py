"""Every fault of a `params.yaml` is one line that names file, key and value, before any work starts."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import PydanticUndefined
from ruamel.yaml import YAML

from passerelle.config import (
    LEARNED_POSITIONS,
    EvaluateParams,
    FetchParams,
    Params,
    ParamsError,
    PrepareParams,
    Section,
    ShardsParams,
    TokenizerParams,
    TrainParams,
    load_params,
)
from passerelle.nn.positions import NUM_LEARNED_POSITIONS

ROOT = Path(__file__).parents[1]
PARAMS_FILES = [
    path
    for path in [ROOT / "params.yaml", *sorted(ROOT.glob("examples/*/params.yaml"))]
    if re.search(
        "^root:", path.read_text(encoding="utf-8"), re.MULTILINE
    )  # others have parameters of their own
]
VARIANTS = [path for file in PARAMS_FILES[1:] for path in sorted(file.parent.glob("*/params.yaml"))]
ABSENT = object()

# Key, wrong value, and how the line goes on after "file: key: " (after "file: " where "~" stands first).
FAULTS: list[tuple[str, Any, str]] = [
    ("root", 3, "input should be a valid string, but is 3"),
    ("root", ABSENT, "missing; add it (see the project's params.yaml)"),
    ("modle", {}, "unknown key; see the comments in the project's params.yaml for the known ones"),
    ("model", ABSENT, "missing; add it (see the project's params.yaml)"),
    ("model", [], "input should be a valid dictionary or instance of ModelConfig, but is []"),
    ("corpus.name", None, "input should be a valid string, but is None"),
    ("corpus.attribution", ABSENT, "missing; add it (see the project's params.yaml)"),
    ("corpus.origin", "hub", "input should be 'file' or 'phrasebook', but is 'hub'"),
    ("corpus.sha256", "0BB8", "string should match pattern '^[0-9a-f]{64}$', but is '0BB8'"),
    ("corpus.urls", "a.example/b.zip", "input should be a valid list, but is 'a.example/b.zip'"),
    ("corpus.max_bytes", 0, "input should be greater than 0, but is 0"),
    ("languages.source", "English", "string should match pattern '^[a-z]{2,3}$', but is 'English'"),
    ("languages.target", False, "input should be a valid string, but is False"),
    ("cleaning.max_words", 80.0, "input should be a valid integer, but is 80.0"),
    ("cleaning.max_length_ratio", 1.0, "input should be greater than 1, but is 1.0"),
    ("cleaning.max_pairs", -5, "input should be greater than 0, but is -5"),
    ("cleaning.lowercase", 1, "input should be a valid boolean, but is 1"),
    ("split.train_lines", 0, "input should be greater than 0, but is 0"),
    ("split.seed", -1, "input should be greater than or equal to 0, but is -1"),
    ("split.test_sentences", "2000", "input should be a valid integer, but is '2000'"),
    ("tokenizer.kind", "words", "input should be 'unigram', 'bpe' or 'word', but is 'words'"),
    ("tokenizer.min_frequency", 0, "input should be greater than 0, but is 0"),
    ("tokenizer.vocab_size", 299, "input should be greater than or equal to 300, but is 299"),
    ("shards.max_tokens", 3, "input should be greater than or equal to 4, but is 3"),
    ("shards.shard_bytes", True, "input should be a valid integer, but is True"),
    ("model.name", "rnn", "input should be 'transformer' or 'bahdanau', but is 'rnn'"),
    ("model.positions", "none", "input should be 'sinusoidal' or 'learned', but is 'none'"),
    ("model.attention", "sum", "input should be 'dot' or 'additive', but is 'sum'"),
    ("model.cell", "rnn", "input should be 'gru' or 'lstm', but is 'rnn'"),
    ("model.alignment", None, "input should be 'additive' or 'dot', but is None"),
    ("model.num_heads", 5, "~model: num_heads must divide d_model=192, but is 5"),
    (
        "model.num_encoder_layers",
        3,
        "unknown key; see the comments in the project's params.yaml for the known ones",
    ),
    ("model.dropout", 1.0, "input should be less than 1, but is 1.0"),
    ("model.norm", "Pre", "input should be 'pre' or 'post', but is 'Pre'"),
    ("model.share_embeddings", "yes", "input should be a valid boolean, but is 'yes'"),
    ("training.precision", "fp16", "input should be 'auto', 'fp32' or 'bf16', but is 'fp16'"),
    ("training.micro_batch_tokens", 63, "input should be greater than or equal to 64, but is 63"),
    ("training.micro_batch_sentences", 6.4, "input should be a valid integer, but is 6.4"),
    ("training.optimizer", "sgd", "input should be 'muon' or 'adam', but is 'sgd'"),
    (
        "training.schedule",
        "step",
        "input should be 'constant', 'inverse_sqrt', 'cosine' or 'linear', but is 'step'",
    ),
    ("training.micro_batches_per_step", 0, "input should be greater than 0, but is 0"),
    ("training.learning_rate", "2e-3", "input should be a valid number, but is '2e-3'"),
    ("training.learning_rate", math.inf, "input should be a finite number, but is inf"),
    ("training.warmup_steps", 99_999, "~training: warmup_steps must be below max_steps="),
    ("training.validate_every", 99_999, "~training: validate_every must be at most max_steps="),
    ("training.beta2", 1, "input should be less than 1, but is 1"),
    ("training.clip_norm", 0.0, "input should be greater than 0, but is 0.0"),
    ("training.weight_decay", math.nan, "input should be a finite number, but is nan"),
    ("training.average_of", "all", "input should be 'last' or 'best', but is 'all'"),
    ("decoding.beam_size", 0, "input should be greater than 0, but is 0"),
    ("decoding.length_penalty", -0.5, "input should be greater than or equal to 0, but is -0.5"),
    ("evaluation.bootstrap_samples", 99, "input should be greater than or equal to 100, but is 99"),
    (
        "evaluation.attention_sentences",
        [1],
        "~evaluation.attention_sentences.0: input should be a valid string",
    ),
]


def read_yaml(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


def write_params(path: Path, *changes: tuple[str, Any]) -> Path:
    """The project's own params.yaml, changed at each dotted key (or without it, for ABSENT)."""
    sections = read_yaml(ROOT / "params.yaml")
    for key, value in changes:
        *parents, last = key.split(".")
        section = sections
        for parent in parents:
            section = section[parent]
        if value is ABSENT:
            del section[last]
        else:
            section[last] = value
    with path.open("w", encoding="utf-8") as file:
        YAML(typ="safe", pure=True).dump(sections, file)
    return path


@pytest.mark.parametrize("key", ["decoding.max_length", "shards.max_tokens"])
def test_learned_positions_must_reach_as_far_as_sentences(tmp_path: Path, key: str) -> None:
    path = write_params(tmp_path / "params.yaml", ("model.positions", "learned"))
    load_params(Params, path)
    path = write_params(tmp_path / "params.yaml", ("model.positions", "learned"), (key, 513))
    with pytest.raises(ParamsError, match=r"learned, which ends at 512 tokens, but .*=513.*: lower them$"):
        load_params(Params, path)
    assert LEARNED_POSITIONS == NUM_LEARNED_POSITIONS


def test_lower_case_goes_with_words_alone(tmp_path: Path) -> None:
    path = write_params(tmp_path / "params.yaml", ("cleaning.lowercase", True))
    with pytest.raises(ParamsError, match=r"cleaning.lowercase is true.*and it is unigram: change one"):
        load_params(Params, path)


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


@pytest.mark.parametrize(("key", "value", "line"), FAULTS)
def test_a_fault_is_one_line_with_file_key_and_value(tmp_path: Path, key: str, value: Any, line: str) -> None:
    path = write_params(tmp_path / "params.yaml", (key, value))
    line = f"{path}: " + (line.removeprefix("~") if line.startswith("~") else f"{key}: {line}")
    with pytest.raises(ParamsError, match="^" + re.escape(line)) as fault:
        load_params(FetchParams, path)  # a fault in any section stops every stage
    assert "\n" not in str(fault.value)


def test_all_faults_of_a_file_are_reported_together(tmp_path: Path) -> None:
    faults = [("model.dropout", "none"), ("training.seed", -7), ("decoding.beams", 4)]
    path = write_params(tmp_path / "params.yaml", *faults)
    with pytest.raises(ParamsError) as fault:
        load_params(TrainParams, path)
    keys = [line.removeprefix(f"{path}: ").split(":")[0] for line in str(fault.value).splitlines()]
    assert keys == [key for key, _ in faults]


def test_a_corpus_from_a_file_needs_a_place_to_look(tmp_path: Path) -> None:
    nowhere = [("corpus.archive_variable", None), ("corpus.path", None), ("corpus.urls", [])]
    path = write_params(tmp_path / "params.yaml", *nowhere)
    with pytest.raises(
        ParamsError, match=r"corpus: origin is file, so archive_variable, path or urls must say"
    ):
        load_params(FetchParams, path)
    load_params(FetchParams, write_params(path, *nowhere, ("corpus.origin", "phrasebook")))


def test_an_odd_width_is_refused(tmp_path: Path) -> None:
    path = write_params(tmp_path / "params.yaml", ("model.d_model", 15), ("model.num_heads", 5))
    with pytest.raises(ParamsError, match=r"model: d_model must be even \(.*\), but is 15"):
        load_params(TrainParams, path)


def test_widths_of_heads_bind_the_transformer_alone(tmp_path: Path) -> None:
    changes = [("model.name", "bahdanau"), ("model.d_model", 15), ("model.num_heads", 4)]
    params = load_params(TrainParams, write_params(tmp_path / "params.yaml", *changes))
    assert params.model.d_model == 15


def write_variant(folder: Path, text: str) -> Path:
    """A file beside which, in the folder above, the project's params.yaml stands."""
    write_params(folder / "params.yaml", ("training.seed", 5))
    (folder / "small").mkdir()
    path = folder / "small" / "params.yaml"
    path.write_text(text, encoding="utf-8")
    return path


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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("training: {seed: -1}", "small/params.yaml: training.seed: input should be greater than or equal"),
        ("training: {sed: 1}", "small/params.yaml: training.sed: unknown key"),
        ("model: {num_heads: 5}", "small/params.yaml: model: num_heads must divide d_model="),
        ("decoding: 5", "small/params.yaml: decoding: input should be a valid dictionary"),
        (
            "split: {seed: 1}",
            "small/params.yaml: split: a variant may change model, training, decoding, evaluation, since the stages",
        ),
        ("modle: {}", "small/params.yaml: modle: a variant may change model, training, decoding, evaluation"),
        ("- model", "small/params.yaml: expected sections (key: value), found list"),
    ],
)
def test_a_fault_of_a_variant_is_one_line_that_names_its_file(tmp_path: Path, text: str, line: str) -> None:
    path = write_variant(tmp_path, text)
    with pytest.raises(ParamsError, match="^" + re.escape(f"{tmp_path}/{line}")) as fault:
        load_params(TrainParams, path)
    assert "\n" not in str(fault.value)


def test_a_fault_of_the_file_above_names_that_one(tmp_path: Path) -> None:
    path = write_variant(tmp_path, "model: {d_model: 16}\n")
    write_params(tmp_path / "params.yaml", ("model.dropout", 2.0), ("model.d_model", -1))
    with pytest.raises(ParamsError, match=rf"^{tmp_path}/params.yaml: model.dropout: input .* 2.0$"):
        load_params(EvaluateParams, path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"params\.yaml: no such file; run the stage in the folder that holds params\.yaml"),
        (b"corpus: \xe9t\xe9", r"params\.yaml: not UTF-8 at byte 8; save the file as UTF-8"),
        (b"corpus: [1, 2", r"params\.yaml: not valid YAML: .*line 1"),
        (b"root: .\nroot: ..\n", r"params\.yaml: not valid YAML: .*duplicate key \"root\""),
        (b"- corpus\n", r"params\.yaml: expected sections \(key: value\), found list"),
        (b"", r"params\.yaml: expected sections \(key: value\), found NoneType"),
    ],
)
def test_what_is_no_params_file_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "params.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ParamsError, match=message) as fault:
        load_params(FetchParams, path)
    assert str(fault.value).count("\n") == 0


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
