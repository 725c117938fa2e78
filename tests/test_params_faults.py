"""Every fault of a `params.yaml` is one line that names file, key and value, before any work starts."""

import math
import os
import re
from pathlib import Path
from typing import Any

import pytest

from params_files import ABSENT, ROOT, write_params, write_variant
from passerelle.config import LEARNED_POSITIONS, EvaluateParams, FetchParams, Params, TrainParams
from passerelle.nn.positions import NUM_LEARNED_POSITIONS
from passerelle.params_file import ParamsError, load_params

# Key, wrong value, and how the line goes on after "file: key: " (after "file: " where "~" stands first).
FAULTS: list[tuple[str, Any, str]] = [
    ("root", 3, "input should be a valid string, but is 3"),
    ("root", ABSENT, "missing; add it (see the project's params.yaml)"),
    ("modle", {}, "unknown key; did you mean model?"),
    ("model", ABSENT, "missing; add it (see the project's params.yaml)"),
    ("model", [], "input should be a section, with its keys below it, but is []"),
    ("corpus.name", None, "input should be a valid string, but is null"),
    ("corpus.attribution", ABSENT, "missing; add it (see the project's params.yaml)"),
    ("corpus.origin", "hub", "input should be 'file' or 'phrasebook', but is 'hub'"),
    ("corpus.sha256", "0BB8", "input should be 64 hexadecimal digits in small letters, but is '0BB8'"),
    ("corpus.urls", "a.example/b.zip", "input should be a valid list, but is 'a.example/b.zip'"),
    ("corpus.max_bytes", 0, "input should be greater than 0, but is 0"),
    ("languages.source", "English", "input should be an ISO 639 code such as en or fra, but is 'English'"),
    ("languages.target", False, "input should be a valid string, but is false"),
    ("cleaning.max_words", 80.0, "input should be a valid integer, but is 80.0"),
    ("cleaning.max_length_ratio", 1.0, "input should be greater than 1, but is 1.0"),
    ("cleaning.max_pairs", -5, "input should be greater than 0, but is -5"),
    ("cleaning.lowercase", 1, "input should be true or false, but is 1"),
    ("split.train_lines", 0, "input should be greater than 0, but is 0"),
    (
        "split.seed",
        2**63,
        "input should be less than or equal to 9223372036854775807, but is 9223372036854775808",
    ),
    (
        "split.seed",
        10**99,
        "input should be less than or equal to 9223372036854775807, but is a number of about 98 ",
    ),
    ("split.seed", -1, "input should be greater than or equal to 0, but is -1"),
    ("split.test_sentences", "2000", "input should be a valid integer, but is '2000'"),
    ("tokenizer.kind", "words", "input should be 'unigram', 'bpe' or 'word', but is 'words'"),
    ("tokenizer.min_frequency", 0, "input should be greater than 0, but is 0"),
    ("tokenizer.vocab_size", 299, "input should be greater than or equal to 300, but is 299"),
    ("shards.max_tokens", 3, "input should be greater than or equal to 4, but is 3"),
    ("shards.shard_bytes", True, "input should be a valid integer, but is true"),
    ("model.name", "rnn", "input should be 'transformer' or 'bahdanau', but is 'rnn'"),
    ("model.positions", "none", "input should be 'sinusoidal' or 'learned', but is 'none'"),
    ("model.attention", "sum", "input should be 'dot' or 'additive', but is 'sum'"),
    ("model.cell", "rnn", "input should be 'gru' or 'lstm', but is 'rnn'"),
    ("model.alignment", None, "input should be 'additive' or 'dot', but is null"),
    ("model.num_heads", 5, "~model: num_heads must divide d_model=192, but is 5"),
    ("model.num_encoder_layers", 3, "unknown key; did you mean num_layers?"),
    ("model.bias", 3, "unknown key; see the comments in the project's params.yaml for the known ones"),
    ("model.max_steps", 3, "unknown key; did you mean training.max_steps?"),
    ("beam_size", 3, "unknown key; did you mean decoding.beam_size?"),
    ("training.learning_rat", 1.0, "unknown key; did you mean learning_rate?"),
    ("model.two\nlines", 3, r"~model.'two\nlines': unknown key; see"),
    ("model.d_model", 2**40, "input should be less than or equal to 1000000, but is 1099511627776"),
    ("model.num_layers", 1001, "input should be less than or equal to 1000, but is 1001"),
    ("model.num_layers", [3], "input should be a valid integer, but is [3]"),
    ("model.num_layers", {"encoder": 3}, "input should be a valid integer, but is {'encoder': 3}"),
    ("model.dropout", 1.0, "input should be less than 1, but is 1.0"),
    ("model.norm", "Pre", "input should be 'pre' or 'post', but is 'Pre'"),
    ("model.share_embeddings", "yes", "input should be true or false, but is 'yes'"),
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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("training: {seed: -1}", "small/params.yaml: training.seed: input should be greater than or equal"),
        ("training: {sed: 1}", "small/params.yaml: training.sed: unknown key"),
        ("model: {num_heads: 5}", "small/params.yaml: model: num_heads must divide d_model="),
        (
            "decoding: 5",
            "small/params.yaml: decoding: input should be a section, with its keys below it, but is 5",
        ),
        (
            "split: {seed: 1}",
            "small/params.yaml: split: a variant may change model, training, decoding, evaluation, since the stages",
        ),
        (
            "model: {d_model: 16, d_model: 32}",
            "small/params.yaml: line 1: duplicate key model.d_model; keep one",
        ),
        (
            "training: {max_step: 9}",
            "small/params.yaml: training.max_step: unknown key; did you mean max_steps?",
        ),
        ("model: [", "small/params.yaml: not valid YAML: line 1, column 9: "),
        (
            "model: null",
            "small/params.yaml: model: input should be a section, with its keys below it, but is null",
        ),
        ("modle: {}", "small/params.yaml: modle: a variant may change model, training, decoding, evaluation"),
        ("- model", "small/params.yaml: expected sections (key: value), found ['model']"),
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


# A key, the text behind it, and how the line goes on after "file: ": what the table above cannot write.
TEXTS = [
    ("split.seed", "9" * 5000, "split.seed: input should be a valid integer, but is '999"),
    (
        "split.seed",
        "0x" + "f" * 5000,
        "split.seed: input should be less than or equal to 9223372036854775807, but is a",
    ),
    ("split.seed", "1_0.5", "split.seed: input should be a valid integer, but is 10.5"),
    ("split.seed", "2024-99-99", "split.seed: input should be a valid integer, but is '2024-99-99'"),
    ("split.seed", "!!int x", "split.seed: input should be a valid integer, but is 'x'"),
    (
        "split.seed",
        "!!python/object/apply:os.system [x]",
        "split.seed: the tag !!python/object/apply:os.system is not",
    ),
    ("split.seed", "!!binary aGk=", "split.seed: the tag !!binary is not allowed; write a plain value"),
    ("split.seed", "!mine 3", "split.seed: the tag !mine is not allowed"),
    ("split.seed", "a: b", "not valid YAML: line {line}, column 10: mapping values are not allowed here"),
    (
        "split.seed",
        "`3`",
        "not valid YAML: line {line}, column 9: found character '`' that cannot start any token",
    ),
    ("split.seed", "'3", "not valid YAML: line "),
    ("corpus.name", r'"\ud800"', r"corpus.name: '\ud800' has half of a character (a lone surrogate)"),
    ("corpus.name", r'"\U00110000"', "not valid YAML: chr() arg not in range(0x110000)"),
    ("corpus.name", "\0", "the character U+0000 is not allowed in YAML; save the file as UTF-8 text"),
    ("corpus.name", "x\n  name: y", "duplicate key corpus.name; keep one of them"),
    ("corpus.name", "x\n\tpath: y", "that cannot start any token (indent with spaces)"),
    (
        "corpus.name",
        "x\n    path: y",
        "not valid YAML: line {after}, column 9: mapping values are not allowed here",
    ),
    (
        "corpus.name",
        "&n x\n  path: *n",
        "corpus.path: an alias (*name) is not allowed; write the value itself",
    ),
    ("corpus.name", "*n", "not valid YAML: line {line}, column 9: found undefined alias 'n'"),
    ("corpus.name", "x\n  <<: {path: y}", "a merge key (<<) is not allowed; write the keys themselves"),
    ("corpus.name", "x\n  [a]: y", "a key must be a word"),
    ("corpus.name", "x\n  3: y", "corpus.3: unknown key; see the comments"),
    (
        "evaluation.attention_indices",
        "[3, [b]]",
        "evaluation.attention_indices.1: input should be a valid integer",
    ),
    ("evaluation.attention_indices", "[" + "[x], " * 30 + "]", "and 10 more faults"),
    ("training.learning_rate", "1,5", "training.learning_rate: input should be a valid number, but is '1,5'"),
    (
        "training.learning_rate",
        "6e-3x",
        "training.learning_rate: input should be a valid number, but is '6e-3x'",
    ),
    (
        "training.learning_rate",
        "1e999",
        "training.learning_rate: input should be a finite number, but is inf",
    ),
    ("training.learning_rate", "", "training.learning_rate: input should be a valid number, but is null"),
    ("model.share_embeddings", "on", "model.share_embeddings: input should be true or false, but is 'on'"),
    ("model.share_embeddings", "0", "model.share_embeddings: input should be true or false, but is 0"),
    ("model.name", "x" * 5000, "model.name: input should be 'transformer' or 'bahdanau', but is 'xxx"),
    ("model.name", "[" * 900, "nested too deeply; expected sections of key: value"),
]


def write_text(path: Path, key: str, text: str) -> int:
    """The project's own params.yaml with `text` behind a key; returns the line."""
    section, name = key.split(".")
    lines = (ROOT / "params.yaml").read_text(encoding="utf-8").splitlines()
    start = lines.index(f"{section}:")
    line = next(number for number in range(start, len(lines)) if lines[number].startswith(f"  {name}:"))
    lines[line] = f"  {name}: {text}"
    path.write_text("\n".join(lines), encoding="utf-8")
    return line + 1


@pytest.mark.parametrize(
    ("key", "text", "line"), TEXTS, ids=[f"{key} {text[:20]!r}" for key, text, _ in TEXTS]
)
def test_a_fault_of_the_text_is_one_short_line(tmp_path: Path, key: str, text: str, line: str) -> None:
    path = tmp_path / "params.yaml"
    number = write_text(path, key, text)
    with pytest.raises(ParamsError) as fault:
        load_params(TrainParams, path)
    *_, last = str(fault.value).splitlines()
    assert last.startswith(f"{path}: ")
    assert line.format(line=number, after=number + 1) in last
    assert len(last) < len(str(path)) + 250
    assert str(fault.value) == last or line == "and 10 more faults"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("training.learning_rate", "1e-3", 1e-3),
        ("training.learning_rate", "1", 1.0),
        ("training.max_steps", "1_000", 1000),
        ("corpus.name", "2024-01-31", "2024-01-31"),
        ("corpus.name", "yes", "yes"),
        ("corpus.name", "012", None),
        ("corpus.name", '"012"', "012"),
        ("corpus.path", "~", None),
    ],
)
def test_yaml_means_what_it_says(tmp_path: Path, key: str, text: str, value: Any) -> None:
    write_text(tmp_path / "params.yaml", key, text)
    section, name = key.split(".")
    if text == "012":  # a number, since YAML 1.2 knows no octal with a mere zero
        with pytest.raises(ParamsError, match=r"corpus\.name: input should be a valid string, but is 12$"):
            load_params(Params, tmp_path / "params.yaml")
    else:
        assert getattr(getattr(load_params(Params, tmp_path / "params.yaml"), section), name) == value


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text((ROOT / "params.yaml").read_text(encoding="utf-8"), encoding="utf-8-sig")
    assert load_params(Params, path) == load_params(Params, ROOT / "params.yaml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"params\.yaml: no such file; run the stage in the folder that holds params\.yaml"),
        (b"corpus: \xe9t\xe9", r"params\.yaml: not UTF-8 \(at byte 8\); save the file as UTF-8"),
        (b"corpus: [1, 2", r"params\.yaml: not valid YAML: .*line 1"),
        (b"root: .\nroot: ..\n", r"params\.yaml: line 2: duplicate key root; keep one of them"),
        (b"- corpus\n", r"params\.yaml: expected sections \(key: value\), found \['corpus'\]"),
        (b"corpus", r"params\.yaml: expected sections \(key: value\), found 'corpus'"),
        (b"", r"params\.yaml: expected sections \(key: value\), found nothing"),
        (b"# to be written\n\n", r"params\.yaml: expected sections \(key: value\), found nothing"),
        (
            b"root: .\n---\nroot: .\n",
            r"params\.yaml: not valid YAML: line 2, column 1: found another document",
        ),
        (b"%YAML 9.9\n---\nroot: .\n", r"params\.yaml: not valid YAML: line 1, column 1: found incompatible"),
        (
            "root: .".encode("utf-16"),
            r"params\.yaml: not UTF-8 \(it looks like UTF-16\); save the file as UTF-8",
        ),
        (
            "root: .".encode("utf-16-be"),
            r"params\.yaml: line 1: the character U\+0000 is not allowed in YAML",
        ),
        (b"a: " + b"x" * 100_000, r"params\.yaml: over 100000 bytes, so no params file"),
    ],
)
def test_what_is_no_params_file_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "params.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ParamsError, match=message) as fault:
        load_params(FetchParams, path)
    assert str(fault.value).count("\n") == 0


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(ParamsError, match=r"params\.yaml: over 100000 bytes, so no params file"):
        load_params(FetchParams, path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.mkdir()
    with pytest.raises(ParamsError, match=r"params\.yaml: not a file; it must be a YAML file of sections$"):
        load_params(FetchParams, path)
    path.rmdir()
    os.mkfifo(path)  # which would be waited for
    with pytest.raises(ParamsError, match=r"params\.yaml: not a file"):
        load_params(FetchParams, path)
    with pytest.raises(ParamsError, match=r"params\.yaml/params\.yaml: cannot be read \(Not a directory\)$"):
        load_params(FetchParams, path / "params.yaml")


def test_a_tower_of_aliases_is_not_climbed(tmp_path: Path) -> None:
    floors = [f"  urls{number}: &l{number} [{f'*l{number - 1}, ' * 9}]" for number in range(1, 40)]
    text = "\n".join(["corpus:", "  urls0: &l0 [x]", *floors, ""])
    (tmp_path / "params.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(
        ParamsError, match=r"params\.yaml: corpus\.urls1\.0: an alias \(\*name\) is not allowed"
    ):
        load_params(FetchParams, tmp_path / "params.yaml")
