"""A model is not tested on what it was trained on."""

from pathlib import Path

import pytest

from passerelle.evaluation.held_out import HeldOut
from passerelle.evaluation.overlap import check_no_overlap, trained_on
from small_model import SOURCES, TARGETS, write_small_model

UNKNOWN = HeldOut(
    ["I sleep.", "They left.", "No."],
    [["Je dors."], ["Ils partent.", "Elles partent."], ["Non."]],
    ["a", "b", "c"],
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("small"))


def with_source(text: str) -> HeldOut:
    return HeldOut([*UNKNOWN.sources[:2], text], UNKNOWN.references, UNKNOWN.groups)


def with_reference(text: str) -> HeldOut:
    return HeldOut(UNKNOWN.sources, [["Je dors."], ["Ils partent.", text], ["Non."]], UNKNOWN.groups)


def test_sentences_that_training_did_not_see_pass(model: Path) -> None:
    check_no_overlap(UNKNOWN, model)


@pytest.mark.parametrize(
    ("held_out", "example"),
    [
        (with_source(SOURCES[0].upper().replace(".", " ...")), "WE SEE A BOAT ..."),
        (with_reference(TARGETS[1].replace(" !", "\u202f!")), "They left."),
    ],
)
def test_a_source_or_a_reference_of_training_is_refused(held_out: HeldOut, example: str, model: Path) -> None:
    message = rf"trained on the source or a reference of 1 of the 3 sentences .*, such as '{example}'"
    with pytest.raises(ValueError, match=message):
        check_no_overlap(held_out, model)


def test_a_language_is_compared_with_itself_alone(model: Path) -> None:
    check_no_overlap(with_source(TARGETS[0]), model)
    check_no_overlap(with_reference(SOURCES[0]), model)


def test_each_sentence_is_found_by_itself(model: Path) -> None:
    sources = [SOURCES[5], "No.", "No.", SOURCES[6]]
    references = [["Non."], ["Non.", "Nan."], ["Nan.", TARGETS[0]], [TARGETS[3], TARGETS[4]]]
    assert trained_on(sources, references, model).tolist() == [True, False, True, True]
