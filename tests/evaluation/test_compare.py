"""Two sets of translations held against each other, and test sets that do not match."""

from dataclasses import replace

import pytest

from passerelle.evaluation.compare import check_same_test_set, compare
from passerelle.evaluation.paired import paired_score
from passerelle.evaluation.scores import Resampling, sentence_chrf
from passerelle.evaluation.translated import Translated

FIRST = Translated(
    "one.jsonl",
    sources=["Go on.", "We see.", "They hide.", "You sell."],
    references=[["continuez .", "vas-y ."], ["nous voyons ."], ["ils se cachent ."], ["vous vendez ."]],
    hypotheses=["continuez .", "nous voyez .", "ils cachent .", "vendez ."],
    groups=["a", "b", "a", "c"],
)
SECOND = replace(
    FIRST, name="two.jsonl", hypotheses=["continuez .", "nous voyons .", "elles .", "vous vendez ici ."]
)


def test_scores_are_paired_over_the_groups_of_the_test_set() -> None:
    comparison = compare(FIRST, SECOND, 100, seed=3)
    resampling = Resampling(FIRST.groups, 100, seed=3)
    assert comparison.scores == [
        paired_score(metric, FIRST.hypotheses, SECOND.hypotheses, FIRST.references, resampling)
        for metric in ("BLEU", "chrF++", "TER")
    ]
    assert comparison.interval == "interval:95%|bootstrap:100|over:3 groups|seed:3"


def test_the_most_changed_sentences_come_first_and_equal_ones_not_at_all() -> None:
    changes = compare(FIRST, SECOND, 100, seed=3).changes
    scores = [sentence_chrf(each.hypotheses, FIRST.references) for each in (FIRST, SECOND)]
    distances = [abs(after - before) for before, after in zip(*scores, strict=True)]
    assert {change.index for change in changes} == {1, 2, 3}
    assert [change.index for change in changes] == sorted((1, 2, 3), key=lambda index: -distances[index])
    for change in changes:
        assert (change.first, change.second) == (
            FIRST.hypotheses[change.index],
            SECOND.hypotheses[change.index],
        )
        assert change.first_chrf == pytest.approx(scores[0][change.index])
        assert change.difference == pytest.approx(scores[1][change.index] - scores[0][change.index])
    assert compare(FIRST, FIRST, 100, seed=3).changes == []


def shortened(translated: Translated) -> Translated:
    return Translated(
        "two.jsonl",
        translated.sources[1:],
        translated.references[1:],
        translated.hypotheses[1:],
        translated.groups[1:],
    )


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (shortened(SECOND), r"the first has 4 sentences, the second 3$"),
        (
            replace(SECOND, sources=["Go on.", "We saw.", "They hid.", "You sell."]),
            r": source of sentence 1: 'We see\.' in the first, 'We saw\.' in the second "
            r"\(2 of 4 sentences differ so\)$",
        ),
        (
            replace(SECOND, sources=FIRST.sources[::-1]),
            r" test set in the same order; evaluate both again from one data/prepared/test.parquet$",
        ),
        (
            replace(SECOND, references=[["vas-y ."], *FIRST.references[1:]]),
            r": references of sentence 0: \['continuez \.', 'vas-y \.'\] in the first, \['vas-y \.'\] in",
        ),
        (
            replace(SECOND, groups=["a", "b", "d", "c"]),
            r": group of sentence 2: 'a' in the first, 'd' in the second \(1 of 4",
        ),
        (
            replace(SECOND, sources=["x" * 200, *FIRST.sources[1:]]),
            r"'x{76}\.\.\. in the second",
        ),
    ],
)
def test_another_test_set_is_refused_with_what_differs(second: Translated, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^one\.jsonl and two\.jsonl do not translate the same.*{message}"):
        check_same_test_set(FIRST, second)
    with pytest.raises(ValueError, match=r"do not translate the same test set"):
        compare(FIRST, second, 100, seed=3)
