"""Which sentences' attention is written, and that the table of heads and the dump are of the whole test set."""

import csv
from pathlib import Path

import pytest

from passerelle.config import DecodingConfig, EvaluationConfig
from passerelle.decoding.translate import Translation, translate
from passerelle.evaluation import attention_files as module
from passerelle.evaluation.attention_dump import read_attention
from passerelle.evaluation.attention_files import AttentionFindings, chosen_translations, write_attention
from passerelle.evaluation.attention_maps import attention_maps
from passerelle.evaluation.attention_statistics import attention_statistics
from passerelle.evaluation.held_out import HeldOut
from passerelle.model_folder import LoadedModel
from small_model import SOURCES, TARGETS, small_model

DECODING = DecodingConfig(beam_size=1, max_length=7)
LONG = " ".join(["We see a boat"] * 9) + "."
TEST = [*SOURCES[:5], LONG, " "]
SCORES = [50.0, 10.0, 30.0, 10.0, 90.0, 0.0, 0.0]
KINDS = ("encoder", "decoder_self", "cross")


def translation(source: str, num_parts: int = 1) -> Translation:
    return Translation(source, source, source, (3,), -1.0, -1.0, True, num_parts=num_parts)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return small_model(tmp_path_factory.mktemp("small"))


def run(
    loaded: LoadedModel, folder: Path, config: EvaluationConfig, sources: list[str] = TEST
) -> AttentionFindings:
    decoding = DECODING.model_copy(update={"max_source_tokens": 40})
    translations = translate(loaded, sources, decoding)
    test = HeldOut(sources, [[text] for text in TARGETS[: len(sources)]], ["g"] * len(sources))
    return write_attention(loaded, test, translations, SCORES, config, decoding, folder)


def test_sentences_are_chosen_by_text_by_number_and_by_score(loaded: LoadedModel, tmp_path: Path) -> None:
    config = EvaluationConfig(attention_sentences=["We hide."], attention_indices=[4, 1], attention_worst=2)
    found = run(loaded, tmp_path, config)
    assert [one.attention.source for one in found.shown] == ["We hide.", SOURCES[4], SOURCES[1], SOURCES[3]]
    reasons = ["", "test sentence 4", "test sentence 1", "among the worst, test sentence 3"]
    assert [one.reason for one in found.shown] == reasons
    stems = {path.stem for path in (tmp_path / "attention_weights").iterdir()}
    assert {stem[:3] for stem in stems} == {"01-", "02-", "03-", "04-"}
    pictures = {path.name for path in (tmp_path / "attention").iterdir()}
    assert pictures == {f"{stem}.{kind}.png" for stem in stems for kind in KINDS} | {"heads.png"}
    assert not (tmp_path / "attention.arrow").exists()


def test_the_whole_test_set_is_dumped_and_counted_but_what_has_no_attention(
    loaded: LoadedModel, tmp_path: Path
) -> None:
    found = run(loaded, tmp_path, EvaluationConfig(attention_dump=True))
    assert [number for number, _ in read_attention(tmp_path / "attention.arrow")] == [0, 1, 2, 3, 4]
    maps = attention_maps(loaded, translate(loaded, TEST[:5], DECODING))
    expected = attention_statistics(maps)
    with (tmp_path / "heads.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["entropy"]) for row in rows] == pytest.approx(
        [head.entropy for head in expected], abs=2e-5
    )
    assert found.heads_note.startswith(
        "Means over the queries of 5 test sentences. The loss is that of the first"
    )


def test_a_test_set_of_long_lines_alone_has_no_heads(loaded: LoadedModel, tmp_path: Path) -> None:
    found = run(loaded, tmp_path, EvaluationConfig(), [LONG, LONG])
    assert (found.heads, found.heads_note) == ((), module.NOT_MEASURED)
    assert not (tmp_path / "heads.csv").exists()


def test_a_number_that_the_test_set_lacks_is_refused() -> None:
    config = EvaluationConfig(attention_indices=[2])
    expected = r"evaluation.attention_indices names test sentence 2, but they are numbered from 0 to 1"
    with pytest.raises(ValueError, match=expected):
        chosen_translations([translation("a"), translation("b")], [1.0, 2.0], config)


def test_the_worst_are_of_those_that_have_attention() -> None:
    rows = [translation("a"), translation("b", num_parts=2), translation("c", num_parts=0), translation("d")]
    chosen = chosen_translations(rows, [3.0, 1.0, 0.0, 2.0], EvaluationConfig(attention_worst=2))
    assert [one.source for one, _ in chosen] == ["d", "a"]


def test_a_chosen_sentence_in_parts_is_refused(loaded: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"translated in \d+ parts, which do not attend to each other; leave it out"
    ):
        run(loaded, tmp_path, EvaluationConfig(attention_indices=[5]))
