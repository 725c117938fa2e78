"""The dump of many sentences gives back what each has alone, a batch in memory at a time."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from passerelle.config import DecodingConfig
from passerelle.decoding.translate import translate
from passerelle.evaluation import attention_dump as module
from passerelle.evaluation.attention_dump import Numbered, read_attention, written
from passerelle.evaluation.attention_maps import attention_map, attention_maps
from passerelle.model_folder import LoadedModel
from small_model import CONFIG, RECURRENT, SOURCES, small_model

DECODING = DecodingConfig(beam_size=2, max_length=6)


def dumped(loaded: LoadedModel, path: Path, numbers: list[int]) -> list[Numbered]:
    translations = translate(loaded, [SOURCES[number] for number in numbers], DECODING)
    return list(written(zip(numbers, attention_maps(loaded, translations), strict=True), path))


@pytest.mark.parametrize("config", [CONFIG, RECURRENT], ids=lambda config: config.name)
def test_reading_back_gives_the_attention_of_single_sentences(
    config: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SENTENCES_AT_ONCE", 3)
    loaded = small_model(tmp_path, config)  # type: ignore[arg-type]
    numbers = [0, 1, 4, 7, 8, 9, 30]
    passed = dumped(loaded, tmp_path / "attention.arrow", numbers)
    found = list(read_attention(tmp_path / "attention.arrow"))
    assert [number for number, _ in found] == [number for number, _ in passed] == numbers
    for (number, attention), translation in zip(
        found, translate(loaded, [SOURCES[n] for n in numbers], DECODING), strict=True
    ):
        alone = attention_map(loaded, translation)
        assert attention.source == alone.source == SOURCES[number]
        assert attention.translation == alone.translation
        for name in ("source_tokens", "target_tokens", "predicted_tokens"):
            assert getattr(attention, name) == getattr(alone, name)
        assert attention.weights.keys() == alone.weights.keys()
        for kind, weights in alone.weights.items():
            assert attention.weights[kind].dtype == np.float32
            np.testing.assert_allclose(attention.weights[kind], weights, atol=1e-5)


def test_any_arrow_library_reads_it(tmp_path: Path) -> None:
    loaded = small_model(tmp_path)
    [(_, attention)] = dumped(loaded, tmp_path / "attention.arrow", [5])
    with pa.memory_map(str(tmp_path / "attention.arrow")) as file:
        table = pa.ipc.open_file(file).read_all()
    assert json.loads(table.schema.metadata[b"axes"])["cross"] == [
        "layer",
        "head",
        "target_tokens",
        "source_tokens",
    ]
    row = table.to_pylist()[table["kind"].to_pylist().index("cross")]
    assert row["sentence"] == 5
    weights = np.array(row["weights"], dtype=np.float32).reshape(row["shape"])
    np.testing.assert_array_equal(weights, attention.weights["cross"])


def test_a_batch_is_written_before_the_next_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SENTENCES_AT_ONCE", 2)
    loaded = small_model(tmp_path)
    asked: list[int] = []

    def maps() -> Iterator[Numbered]:
        for number, attention in enumerate(attention_maps(loaded, translate(loaded, SOURCES[:6], DECODING))):
            asked.append(number)
            yield number, attention

    passing = written(maps(), tmp_path / "attention.arrow")
    for number, _ in passing:
        assert len(asked) <= number // 2 * 2 + 2
        assert not (tmp_path / "attention.arrow").exists()
    assert (tmp_path / "attention.arrow").is_file()


def test_a_fault_on_the_way_leaves_no_file(tmp_path: Path) -> None:
    def broken() -> Iterator[Numbered]:
        yield 0, attention_map(loaded, translate(loaded, SOURCES[:1], DECODING)[0])
        raise ValueError("stop")

    loaded = small_model(tmp_path)
    with pytest.raises(ValueError, match="stop"):
        list(written(broken(), tmp_path / "attention.arrow"))
    assert not list(tmp_path.glob("*attention.arrow*"))


def test_what_is_no_dump_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"absent.arrow: no such file; evaluation.attention_dump in params.yaml"
    ):
        list(read_attention(tmp_path / "absent.arrow"))
    (tmp_path / "text.arrow").write_text("no Arrow at all")
    with pytest.raises(ValueError, match=r"text.arrow: not an Arrow file .*; evaluate again"):
        list(read_attention(tmp_path / "text.arrow"))
    table = pa.table({"a": [1]})
    with (
        pa.OSFile(str(tmp_path / "other.arrow"), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)
    with pytest.raises(ValueError, match=r"other.arrow: not a dump of attention that this version reads"):
        list(read_attention(tmp_path / "other.arrow"))
