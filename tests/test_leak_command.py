"""`passerelle leak` on a small model."""

import argparse
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from passerelle.commands import leak
from small_model import SOURCES, TARGETS, write_small_model

NEW = [
    ("The dog barks at night.", ["Le chien aboie la nuit.", "La nuit, le chien aboie."]),
    ("She wrote a long letter.", ["Elle a écrit une longue lettre."]),
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Of a pipeline's variant `wide`, with the split corpus."""
    prepared = tmp_path / "data" / "prepared"
    prepared.mkdir(parents=True)
    (tmp_path / "wide").mkdir()
    model = write_small_model(tmp_path / "wide")
    sources, targets = [*SOURCES[:9:3], SOURCES[0]], [*TARGETS[:9:3], TARGETS[12]]
    pq.write_table(pa.table({"source": sources, "target": targets}), prepared / "train.parquet")
    for split, (source, references) in zip(("valid", "test"), NEW, strict=True):
        pq.write_table(
            pa.table({"source": [source], "references": [references]}), prepared / f"{split}.parquet"
        )
    return model


def run(*arguments: str) -> None:
    parser = argparse.ArgumentParser()
    leak.add(parser.add_subparsers())
    parsed = parser.parse_args(["leak", *arguments])
    parsed.run(parsed)


def test_the_report_and_the_score_are_printed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--model", str(model))
    output = capsys.readouterr().out
    rows = {line.split("  ")[0]: line for line in output.splitlines()}
    assert rows["sentences"].split()[1:] == ["1", "1", "1"]
    assert rows["same source"].split()[1:6] == ["source", "0", "0.0%", "0", "0.0%"]
    assert rows["rows that share a sentence with another, trained on"].endswith("2 rows")
    assert rows["rows that share a sentence with another, held out"].endswith("2 rows")
    assert rows["rows that share none, held out"].endswith("1 rows")
    assert "upper bound" in output


def test_another_corpus_can_be_named(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"absent/train.parquet: no such file; run stage prepare first"):
        run("--model", str(model), "--prepared", str(tmp_path / "absent"))
