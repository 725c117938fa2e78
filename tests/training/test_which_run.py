"""Every parameter, and every variable of the environment: does another value start a new run, or continue the old one?

What comes before stage `train` counts by what it makes of the corpus: here of a small one that each parameter changes.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from passerelle.config import Params, Section, TrainParams
from passerelle.corpus.fetch import fetch_corpus
from passerelle.corpus.prepare import prepare_corpus
from passerelle.data.shards import write_shards
from passerelle.data.tokenizer import load_tokenizer, train_tokenizer
from passerelle.training.fingerprint import run_fingerprint

ENGLISH = (
    ("We", "You", "They", "People", "Birds"),
    ("see", "sell", "hide", "like"),
    ("boats", "clocks", "plums", "salt"),
)
FRENCH = (
    ("Nous", "Vous", "Ils", "Des gens", "Des oiseaux"),
    ("trouver", "vendre", "cacher", "aimer"),
    ("bateaux", "horloges", "prunes", "sel"),
)
LINES = [
    f"{' '.join(english)}.\t{' '.join(french)}.\tmade up"
    for english, french in zip(product(*ENGLISH), product(*FRENCH), strict=True)
]
LINES.append(
    "We see boats and clocks and plums and salt and birds too.\tNous trouver tout.\tmade up"
)  # 11 words for 3
LINES.append("YOU sell boats.\tVOUS vendre bateaux.\tmade up")  # in lower case it is there already
TEXT = "\n".join(LINES) + "\n"

BASE: dict[str, Any] = {
    "root": ".",
    "corpus": {"name": "small", "origin": "file", "path": "pairs.tsv", "attribution": "made up"},
    "languages": {},
    "cleaning": {},
    "split": {"valid_sentences": 9, "test_sentences": 9},
    "tokenizer": {"vocab_size": 300},
    "shards": {},
    "model": {},
    "training": {},
    "decoding": {},
    "evaluation": {},
}
STAGES_BEFORE = ("corpus", "languages", "cleaning", "split", "tokenizer", "shards")

# Parameter: another value, which starts a new run; for a few, beside other values that it works on.
NEW: dict[str, Any] = {
    "corpus.origin": "phrasebook",
    "languages.source": "de",
    "languages.target": "it",
    "cleaning.max_words": 3,
    "cleaning.max_length_ratio": 2.0,
    "cleaning.max_line_bytes": 50,
    "cleaning.lowercase": True,
    "cleaning.max_pairs": 60,
    "split.seed": 1,
    "split.valid_sentences": 12,
    "split.test_sentences": 12,
    "split.train_lines": 40,
    "tokenizer.kind": "bpe",
    "tokenizer.vocab_size": 305,
    "tokenizer.min_frequency": 30,
    "tokenizer.max_sentences": 20,
    "shards.max_tokens": 4,
    "shards.shard_bytes": 300,
    "model.name": "bahdanau",
    "model.d_model": 96,
    "model.num_layers": 2,
    "model.dropout": 0.2,
    "model.share_embeddings": False,
    "model.num_heads": 8,
    "model.d_ff": 512,
    "model.norm": "post",
    "model.positions": "learned",
    "model.attention": "additive",
    "model.cell": "lstm",
    "model.alignment": "dot",
    "training.seed": 1,
    "training.precision": "fp32",
    "training.micro_batch_tokens": 512,
    "training.micro_batch_sentences": 64,
    "training.micro_batches_per_step": 3,
    "training.max_steps": 4801,
    "training.optimizer": "adam",
    "training.learning_rate": 0.005,
    "training.muon_rate": 1.0,
    "training.warmup_steps": 401,
    "training.schedule": "cosine",
    "training.beta1": 0.8,
    "training.beta2": 0.99,
    "training.weight_decay": 0.01,
    "training.clip_norm": None,
    "training.label_smoothing": 0.0,
    "training.validate_every": 200,
    "training.bleu_sentences": 0,
    "training.patience": 5,
    "training.average_checkpoints": 5,
    "training.average_of": "best",
}
# Parameter: another value, with which the old run goes on.
SAME: dict[str, Any] = {
    "root": "../..",
    "corpus.name": "tiny",
    "corpus.archive_variable": "ANOTHER_PLACE",
    "corpus.path": "copy.tsv",
    "corpus.urls": ["https://example.org/pairs.zip"],
    "corpus.sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
    "corpus.max_bytes": 1_000_000,
    "corpus.attribution": "somebody else",
    "training.max_skipped_steps": 20,
    "decoding.method": "sample",
    "decoding.beam_size": 4,
    "decoding.length_rule": "wu",
    "decoding.length_penalty": 1.0,
    "decoding.temperature": 0.7,
    "decoding.top_k": 10,
    "decoding.top_p": 0.9,
    "decoding.seed": 1,
    "decoding.max_length_ratio": 1.5,
    "decoding.max_length": 100,
    "decoding.max_source_tokens": 64,
    "decoding.long_lines": "cut",
    "decoding.split_sentences": True,
    "decoding.batch_tokens": 4096,
    "evaluation.bootstrap_samples": 500,
    "evaluation.seed": 1,
    "evaluation.attention_sentences": ["We see boats."],
    "evaluation.attention_indices": [0],
    "evaluation.attention_worst": 1,
    "evaluation.attention_dump": True,
    "evaluation.report_sentences": 10,
}
BESIDE: dict[str, dict[str, Any]] = {
    "corpus.origin": {"cleaning.max_pairs": 70},
    "cleaning.lowercase": {"tokenizer.kind": "word"},
    "tokenizer.min_frequency": {"tokenizer.kind": "word"},
}

Name = Callable[[Mapping[str, Any]], str]


def parameters(section: type[Section], prefix: str = "") -> Iterator[str]:
    """Every leaf below the section, as `training.seed`."""
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from parameters(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name


def params_with(changes: Mapping[str, Any]) -> Params:
    """The base with other values."""
    sections = json.loads(json.dumps(BASE))
    for key, value in changes.items():
        *above, name = key.split(".")
        (sections[above[0]] if above else sections)[name] = value
    return Params.model_validate(sections)


def value_of(params: Params, key: str) -> Any:
    value: Any = params
    for name in key.split("."):
        value = getattr(value, name)
    return value


@pytest.fixture(scope="module")
def name_of_run(tmp_path_factory: pytest.TempPathFactory) -> Name:
    """The name of the run with changed parameters; the stages before `train` are run where they change."""
    root = tmp_path_factory.mktemp("small corpus")
    for name in ("pairs.tsv", "copy.tsv"):
        (root / name).write_text(TEXT, encoding="utf-8")
    made: dict[str, Path] = {}

    def name_of(changes: Mapping[str, Any]) -> str:
        params = params_with(changes)
        key = json.dumps({name: getattr(params, name).model_dump() for name in STAGES_BEFORE})
        if key not in made:
            folder = root / str(len(made))
            run_stages_before(params, root, folder)
            made[key] = folder
        train_params = TrainParams(languages=params.languages, model=params.model, training=params.training)
        return run_fingerprint(
            train_params, made[key] / "shards", load_tokenizer(made[key] / "tokenizer").sha256
        )

    return name_of


def run_stages_before(params: Params, root: Path, folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        fetch_corpus(params.corpus, folder / "raw")
    prepared, tokenizer = folder / "prepared", folder / "tokenizer"
    prepare_corpus(folder / "raw/pairs.txt", prepared, params.languages, params.cleaning, params.split)
    train_tokenizer(prepared / "train.parquet", tokenizer, params.tokenizer)
    for split in ("train", "valid"):
        write_shards(
            prepared / f"{split}.parquet", folder / "shards" / split, load_tokenizer(tokenizer), params.shards
        )


def test_every_parameter_is_of_one_kind() -> None:
    assert not NEW.keys() & SAME.keys()
    assert NEW.keys() | SAME.keys() == set(parameters(Params)), "add the parameter to NEW or to SAME"


@pytest.mark.parametrize("key", NEW)
def test_a_changed_parameter_that_matters_starts_a_new_run(name_of_run: Name, key: str) -> None:
    beside = BESIDE.get(key, {})
    assert value_of(params_with(beside), key) != NEW[key]
    assert name_of_run({**beside, key: NEW[key]}) != name_of_run(beside)


@pytest.mark.parametrize("key", SAME)
def test_a_changed_parameter_that_does_not_matter_continues_the_run(name_of_run: Name, key: str) -> None:
    assert value_of(params_with({}), key) != SAME[key]
    assert name_of_run({key: SAME[key]}) == name_of_run({})


def test_what_the_environment_says_continues_the_run(
    name_of_run: Name, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = name_of_run({})
    for name, value in {
        "PASSERELLE_NUM_WORKERS": "3",
        "PASSERELLE_RUNS": str(tmp_path),
        "PASSERELLE_DECODING_PROCESSES": "1",
        "RAY_ADDRESS": "head:6379",
        "MLFLOW_TRACKING_URI": "http://tracking:5000",
    }.items():
        monkeypatch.setenv(name, value)
    assert name_of_run({}) == before
