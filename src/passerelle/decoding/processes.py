"""Translating in several processes, each with the model and one thread.

Two processes of one thread translate a tenth to a third more than one of two threads: between the large products of a
step stand many small ones, where a second thread waits. But a process takes seconds to start, so only a long text is
given to several (benchmarks/README.md has the figures). On a GPU one is always enough.
"""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache, partial
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import Protocol

import torch

from passerelle.config import DecodingConfig
from passerelle.decoding.ensemble import load_ensemble
from passerelle.decoding.translate import Progress, Translation, translate_n_best
from passerelle.model_folder import LoadedModel

VARIABLE = "PASSERELLE_DECODING_PROCESSES"
HYPOTHESES_OF_A_PROCESS = 15_000
"""A process more pays from about as many sentences times beam_size on (benchmarks/README.md)."""
CHUNK_SENTENCES = 256
"""Given to a process at once: sentences of like length, few enough that all processes end at about one time."""


class TranslateNBest(Protocol):
    """`translate.translate_n_best` with its model."""

    def __call__(
        self,
        sentences: Sequence[str],
        config: DecodingConfig,
        num_best: int = 1,
        progress: Progress | None = None,
    ) -> list[list[Translation]]:
        """The num_best best translations of each sentence."""
        ...


def num_processes(num_sentences: int, config: DecodingConfig) -> int:
    """How many processes translate so much fastest: at most one a core, and what the environment says.

    PASSERELLE_DECODING_PROCESSES is a number, or `auto`. Raises ValueError where it is neither.
    """
    asked = os.environ.get(VARIABLE, "auto")
    if asked != "auto" and not (asked.isdecimal() and int(asked) > 0):
        raise ValueError(f"{VARIABLE} must be auto or a number from 1 on, but is {asked!r}")
    if torch.cuda.is_available():
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if asked != "auto":
        return min(cores, int(asked))
    return max(1, min(cores, num_sentences * config.beam_size // HYPOTHESES_OF_A_PROCESS))


@contextmanager
def translation_processes(
    model_folders: Sequence[Path], number: int, loaded: LoadedModel | None = None
) -> Iterator[TranslateNBest]:
    """A function that translates with the model in the folder (with several as one), in `number` processes.

    They last as long as the block; one is this process itself, and takes `loaded`, where the caller has the model
    already. Raises ValueError, here or at the first call, where a model cannot be loaded. The caller must be a program
    that can be imported (`if __name__ == "__main__"`), as for all of multiprocessing.
    """
    if number == 1:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        yield partial(translate_n_best, loaded or load_ensemble(model_folders, device))
        return
    others = set(active_children())
    pool = ProcessPoolExecutor(number, get_context("spawn"), initializer=_begin)
    try:
        yield partial(_translate, pool, tuple(model_folders))
    except BaseException:  # Ctrl-C too: nobody wants what they are at
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _translate(
    pool: ProcessPoolExecutor,
    folders: tuple[Path, ...],
    sentences: Sequence[str],
    config: DecodingConfig,
    num_best: int = 1,
    progress: Progress | None = None,
) -> list[list[Translation]]:
    order = sorted(range(len(sentences)), key=lambda index: -len(sentences[index]))  # the longest work first
    chunks = [order[start : start + CHUNK_SENTENCES] for start in range(0, len(order), CHUNK_SENTENCES)]
    with _without_ctrl_c():
        waiting = {
            pool.submit(_translated, folders, [sentences[index] for index in chunk], config, num_best): chunk
            for chunk in chunks
        }
    found: list[list[Translation]] = [[] for _ in sentences]
    try:
        for done in as_completed(waiting):
            chunk = waiting[done]
            for index, translations in zip(chunk, done.result(), strict=True):
                found[index] = translations
            if progress:
                progress(len(chunk))
    except BrokenProcessPool:
        raise ChildProcessError(
            f"a process that translates has ended by itself (out of memory?); {VARIABLE}=1 uses one alone"
        ) from None
    return found


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Processes started meanwhile are never told of Ctrl-C, which is the parent's to handle; it is, afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """In a new process: nothing outlives the parent, however it ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _translated(
    folders: tuple[Path, ...], sentences: list[str], config: DecodingConfig, num_best: int
) -> list[list[Translation]]:
    """In a process: one chunk."""
    return translate_n_best(_loaded(folders), sentences, config, num_best)


@cache
def _loaded(folders: tuple[Path, ...]) -> LoadedModel:
    return load_ensemble(folders)
