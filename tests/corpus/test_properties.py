"""Any lines of text: each is kept once or rejected with its reason, and no group of pairs is divided."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from passerelle.config import CleaningConfig, LanguagesConfig, SplitConfig
from passerelle.corpus.prepare import REASONS, prepare_corpus
from passerelle.corpus.split import comparison_keys

SPLITS = ("train", "valid", "test")
FILLERS = [f"Number {number}.\tNombre {number}." for number in range(40)]
TRICKY = "\x00\r\x0b\x0c\x1c\x85\u2028\u2029\ufeff\u200b\u200d\u202e\u0301\u0590א\U0001f468\ufdd0?!«» .'a1É"
texts = st.text(
    st.one_of(st.sampled_from(TRICKY), st.characters(exclude_categories=("Cs",), exclude_characters="\n"))
)
sentences = st.one_of(st.sampled_from(["Go.", "go !", "Number 3!", "Nombre 4", ""]), texts)
lines = st.lists(st.one_of(texts, st.builds("{}\t{}".format, sentences, sentences)), max_size=30)


@settings(deadline=None, max_examples=25)
@given(lines)
def test_each_line_is_kept_or_rejected_and_no_sentence_is_on_two_sides(lines: list[str]) -> None:
    given_lines = FILLERS + lines
    with tempfile.TemporaryDirectory() as name:
        raw, folder = Path(name, "pairs.txt"), Path(name, "prepared")
        raw.write_bytes("".join(f"{line}\n" for line in given_lines).encode())
        split = SplitConfig(valid_sentences=3, test_sentences=4)
        counts = prepare_corpus(raw, folder, LanguagesConfig(), CleaningConfig(max_line_bytes=90), split)
        tables = {
            name: pq.read_table(folder / f"{name}.parquet").to_pylist() for name in (*SPLITS, "rejected")
        }
    assert counts["kept"] + counts["rejected"]["total"] == counts["read"] == len(given_lines)
    assert sum(counts["rejected"][reason] for reason in REASONS) == counts["rejected"]["total"]
    assert all(row["reason"] in REASONS for row in tables["rejected"])
    assert len(tables["rejected"]) == counts["rejected"]["total"]
    assert counts["kept"] == sum(counts[name]["references"] for name in SPLITS)
    rows = [row["row"] for table in tables.values() for row in table]
    assert len(set(rows)) == len(rows)
    side_of: dict[str, str] = {}
    for name in SPLITS:
        for row in tables[name]:
            assert side_of.setdefault(f"group {row['group']}", name) == name
            keys = {"source": [row["source"]], "target": row.get("references", [row.get("target")])}
            for language, found in keys.items():
                for key in comparison_keys(pa.array(found)).to_pylist():
                    assert side_of.setdefault(f"{language} {key}", name) == name
