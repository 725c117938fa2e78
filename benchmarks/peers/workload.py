"""What every peer's program is given and reports: the model's sizes, a file of batches, a stopwatch.

Imports torch alone, so that it runs in any peer's environment.
"""

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

D_MODEL, NUM_HEADS, NUM_LAYERS, D_FF, VOCAB_SIZE = 256, 4, 3, 1024, 8000
DROPOUT = LABEL_SMOOTHING = 0.1
LEARNING_RATE, BETAS = 1e-4, (0.9, 0.98)
PAD, UNK, BOS, EOS = 0, 1, 2, 3
WARM_UP_STEPS, WARM_UP_SECONDS = 2, 2.0
Batch = tuple[Tensor, Tensor]
"""source (B, S), each ends with EOS, and target (B, T + 1), each begins with BOS and ends with EOS; int64, then PAD."""


@dataclass
class Stopwatch:
    """Hands out batches without end until `seconds` of training after a warm-up are over, and measures."""

    seconds: float
    tokens: int = 0
    """Real target tokens of the timed batches, end of sentence counted."""
    padded: int = 0
    """Target tokens of the timed batches with padding."""
    taken: float = 0.0
    """Seconds that the timed batches took."""

    def over(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The next batch is asked for when the step of the one before is done, so the time is that of whole steps."""
        first, began, is_timed = time.perf_counter(), 0.0, False
        for number, batch in enumerate(itertools.cycle(batches)):
            now = time.perf_counter()
            if not is_timed and number >= WARM_UP_STEPS and now - first >= WARM_UP_SECONDS:
                is_timed, began = True, now
            elif is_timed and now - began >= self.seconds:
                self.taken = now - began
                return
            if is_timed:
                self.tokens += int((batch[1][:, 1:] != PAD).sum())
                self.padded += batch[1][:, 1:].numel()
            yield batch

    def report(self, model: nn.Module) -> None:
        """Print what was measured as the last line, in JSON."""
        result = {
            "tokens": self.tokens,
            "seconds": round(self.taken, 3),
            "padding": round(1 - self.tokens / self.padded, 4),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
        }
        print(json.dumps(result))


def read_arguments() -> tuple[argparse.Namespace, list[Batch], Stopwatch]:
    """The options that all programs know, the batches, and a stopwatch; sets seed and threads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    return arguments, torch.load(arguments.batches, weights_only=True), Stopwatch(arguments.seconds)


def train_plainly(
    model: nn.Module,
    logits_of: Callable[[Tensor, Tensor], Tensor],
    precision: str,
    batches: Iterable[Batch],
    stopwatch: Stopwatch,
) -> None:
    """The loop of the tutorials, with torch's fused Adam; prints the measurement.

    logits_of: source (B, S), target (B, T) -> (B, T, V). bf16 is torch's own mixed precision.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=BETAS, fused=True)
    for source, target in stopwatch.over(batches):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = functional.cross_entropy(
                logits_of(source, target[:, :-1]).flatten(0, 1),
                target[:, 1:].flatten(),
                ignore_index=PAD,
                label_smoothing=LABEL_SMOOTHING,
            )
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    stopwatch.report(model)


def vocabulary() -> list[str]:
    """Names for the token ids, so that a peer's own vocabulary gives them the same ids."""
    return ["<pad>", "<unk>", "<s>", "</s>", *map(str, range(4, VOCAB_SIZE))]
