"""A run that is stopped after any step and continued is the run that was never stopped, bit for bit."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed

from passerelle.config import TrainingConfig
from passerelle.training.checkpoint import read_checkpoint
from passerelle.training.group import Group
from tiny import noted_sentences, run, run_processes, spoilt_steps, tiny_config

LAST = {"adam": 13, "muon": 9}
SPOILT = {"adam": {1, 8}, "muon": {5, 6}}
"""Their loss is not a number: they are skipped."""
NUM_PAIRS = 200


def config(optimizer: str) -> TrainingConfig:
    """Adam to the last step, with a cosine and a row of history after 10; Muon until patience ends."""
    settings = {
        "adam": {"max_steps": 13, "validate_every": 6, "schedule": "cosine"},
        "muon": {"max_steps": 60, "validate_every": 3, "learning_rate": 3.0, "muon_rate": 0.1, "patience": 2},
    }
    return tiny_config(optimizer=optimizer, micro_batches_per_step=2, **settings[optimizer])


def without_times(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a checkpoint but for what a clock measured."""
    rows = [{key: row[key] for key in row if key != "tokens_per_second"} for row in facts["history"]]
    since_row = {key: value for key, value in facts["since_row"].items() if key != "seconds"}
    return {**facts, "seconds": None, "history": rows, "since_row": since_row}


def assert_same(found: Path, expected: Path) -> None:
    """Parameters, moments and momentum to the bit, and all facts but the times."""
    (tensors, facts), (other_tensors, other_facts) = read_checkpoint(found), read_checkpoint(expected)
    assert tensors.keys() == other_tensors.keys()
    for name, tensor in other_tensors.items():
        assert torch.equal(tensors[name], tensor), name
    assert without_times(facts) == without_times(other_facts)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both runs, never stopped: <optimizer>/<step>."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for optimizer, last in LAST.items():
        with spoilt_steps(SPOILT[optimizer]):
            reports, _ = run(config(optimizer), folder / optimizer)
        assert reports[-1].step == last
    return folder


@pytest.fixture(scope="module")
def stopped_each_time(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both runs, stopped after every step and continued: <optimizer>/<step>, and so for each step."""
    folder = tmp_path_factory.mktemp("stopped")
    for optimizer, last in LAST.items():
        with spoilt_steps(SPOILT[optimizer]):
            for step in range(1, last + 1):
                before = folder / optimizer / str(step - 1) if step > 1 else None
                run(config(optimizer), folder / optimizer, resume_from=before, stop_after=step)
    return folder


@pytest.mark.parametrize("optimizer", LAST)
def test_a_run_stopped_after_every_step_is_one_never_stopped(
    undisturbed: Path, stopped_each_time: Path, optimizer: str
) -> None:
    for folder in (undisturbed / optimizer).iterdir():
        assert_same(stopped_each_time / optimizer / folder.name, folder)


@pytest.mark.parametrize(
    ("optimizer", "stopped_after"),
    [(optimizer, step) for optimizer, last in LAST.items() for step in range(1, last)],
)
def test_a_run_stopped_after_any_step_ends_as_one_never_stopped(
    tmp_path: Path, undisturbed: Path, stopped_each_time: Path, optimizer: str, stopped_after: int
) -> None:
    checkpoint = stopped_each_time / optimizer / str(stopped_after)
    with spoilt_steps(SPOILT[optimizer]):
        run(config(optimizer), tmp_path, resume_from=checkpoint)
    assert_same(tmp_path / str(LAST[optimizer]), undisturbed / optimizer / str(LAST[optimizer]))


def test_a_continued_run_reads_on_where_it_stopped_and_each_epoch_in_an_order_of_its_own(
    tmp_path: Path,
) -> None:
    two_epochs = tiny_config(max_steps=10, validate_every=10, micro_batches_per_step=4)
    with noted_sentences() as expected:
        run(two_epochs, tmp_path / "whole")
    for stopped_after in (2, 7):
        folder = tmp_path / str(stopped_after)
        with noted_sentences() as found:
            run(two_epochs, folder, stop_after=stopped_after)
        with noted_sentences() as rest:
            run(two_epochs, folder, resume_from=folder / str(stopped_after))
        assert list(rest) == list(range(stopped_after + 1, 11))
        assert found | rest == expected
    read = [tuple(sentence) for step in range(1, 11) for sentence in expected[step]]
    first, second = read[:NUM_PAIRS], read[NUM_PAIRS : 2 * NUM_PAIRS]
    assert sum(len(expected[step]) for step in range(1, 8)) > NUM_PAIRS  # 7 is in the second epoch
    assert Counter(first) == Counter(second)  # every pair once
    assert first != second


@dataclass(frozen=True)
class Part:
    """A part of a run that several workers train: worker 1 alone asks to stop, or loses its numbers."""

    folder: Path
    after: int | None
    """The step that it goes on behind."""
    stop_after: int | None = None
    spoilt: tuple[int, ...] = ()


def several() -> TrainingConfig:
    """More micro-batches than workers, and not a multiple of them."""
    return tiny_config(
        optimizer="muon", muon_rate=1.0, max_steps=12, validate_every=6, micro_batches_per_step=5
    )


def worker(rank: int, num_workers: int, meeting: Path, parts: list[Part]) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=num_workers)
    group = Group(rank, num_workers, distributed.all_reduce)
    for part in parts:
        with spoilt_steps(part.spoilt if rank == 1 else ()), noted_sentences() as notes:
            run(
                several(),
                part.folder,
                group=group,
                resume_from=part.folder / str(part.after) if part.after else None,
                stop_after=part.stop_after if rank == 1 else None,
            )
        part.folder.joinpath(f"notes-{part.after}-{rank}.json").write_text(json.dumps(notes))
        distributed.barrier()  # worker 0 has written what the next part begins with
    distributed.destroy_process_group()


def run_parts(num_workers: int, meeting: Path, parts: list[Part]) -> None:
    run_processes(worker, num_workers, num_workers, meeting, parts)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`alone` with one worker; `whole` and `continued` with two; `changing` with one, then two, then three."""
    folder = tmp_path_factory.mktemp("together")
    alone, changing = folder / "alone", folder / "changing"
    with noted_sentences() as notes:
        run(several(), alone)
    (alone / "notes-None-0.json").write_text(json.dumps(notes))
    with noted_sentences() as notes:
        run(several(), changing, stop_after=4)
    (changing / "notes-None-0.json").write_text(json.dumps(notes))
    parts = [
        Part(folder / "whole", None, spoilt=(5,)),
        Part(folder / "continued", None, stop_after=7, spoilt=(5,)),
        Part(folder / "continued", 7),
        Part(changing, 4, stop_after=8),
    ]
    run_parts(2, folder / "meeting of two", parts)
    run_parts(3, folder / "meeting of three", [Part(changing, 8)])
    return folder


def test_two_workers_that_one_of_them_stops_end_as_if_never_stopped(together: Path) -> None:
    steps = {path.name for path in (together / "continued").iterdir() if path.is_dir()}
    assert steps == {"6", "7", "12"}
    assert_same(together / "continued" / "12", together / "whole" / "12")


def test_a_step_is_skipped_by_all_workers_where_one_has_no_numbers(together: Path) -> None:
    for step in (6, 12):
        assert read_checkpoint(together / "whole" / str(step))[1]["skipped_steps"] == 1


def test_a_changed_number_of_workers_changes_results_by_rounding_alone(together: Path) -> None:
    expected, found = (read_checkpoint(together / name / "12")[1] for name in ("alone", "changing"))
    assert [row["step"] for row in found["history"]] == [6, 10, 12]
    for row, expected_row in zip(found["history"], expected["history"], strict=True):
        assert row.keys() == expected_row.keys()
        for name in row.keys() - {"tokens_per_second"}:
            assert row[name] == pytest.approx(expected_row[name], abs=1e-4), name


def test_each_step_has_the_same_sentences_whatever_the_number_of_workers(together: Path) -> None:
    sentences: dict[str, dict[str, Counter[tuple[int, ...]]]] = {}
    num_workers: Counter[str] = Counter()
    for name in ("alone", "changing"):
        sentences[name] = defaultdict(Counter)
        for path in (together / name).glob("notes-*.json"):
            for step, found in json.loads(path.read_text()).items():
                sentences[name][step].update(map(tuple, found))
                num_workers[step] += name == "changing"
    assert [num_workers[str(step)] for step in range(1, 13)] == [1] * 4 + [2] * 4 + [3] * 4
    assert sentences["changing"] == sentences["alone"]
