"""Target tokens per second of our training step against the chapter's kind of loop, on the textbook's shards.

    python benchmarks/textbook_loop.py [--example examples/textbook] [--epochs 20] [--threads 1]

The chapter's loop, in our own words: every sentence padded or cut to 10 steps, shuffled into batches of 64; logits
of all positions, a cross-entropy masked behind the end and averaged over the steps; its sum over the batch
differentiated, the gradient clipped at 1 parameter by parameter, torch's Adam. Ours: batches of like length, logits
of real tokens alone, one flat gradient. Both train models of the same kind and size in float32, by turns, an epoch
each; what counts is the ratio.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from passerelle.config import TrainParams
from passerelle.data.pairs import SentencePairs, open_shards
from passerelle.data.special import BOS, EOS, PAD
from passerelle.identity import identity
from passerelle.models import build_model
from passerelle.nn.model import Seq2Seq
from passerelle.params_file import load_params
from passerelle.training.batches import planned_steps, step_batches
from passerelle.training.group import ALONE
from passerelle.training.master import make_master
from passerelle.training.step import train_step

NUM_STEPS = 10
CLIP_NORM = 1.0
WARM_UP_EPOCHS = 2

Epoch = Callable[[], int]
"""Trains on every pair once; gives the number of target tokens."""


def our_epochs(params: TrainParams, pairs: SentencePairs, vocab_size: int) -> Epoch:
    """The step of this project, on its own plan."""
    config, device = params.training, torch.device("cpu")
    model = build_model(params.model, vocab_size)
    master = make_master(model, config)
    plan = planned_steps(pairs, config)
    step, waiting = 0, 0

    def epoch() -> int:
        nonlocal step, waiting
        num_tokens, waiting = 0, waiting + len(pairs)
        while waiting > 0:
            micro_batches = next(plan)
            batches = step_batches(pairs, micro_batches, device, ALONE)
            result = train_step(
                model, master, batches, step=step, rate=config.learning_rate, config=config, group=ALONE
            )
            num_tokens += result.num_tokens
            step, waiting = step + 1, waiting - sum(map(len, micro_batches))
        return num_tokens

    return epoch


def chapter_epochs(params: TrainParams, pairs: SentencePairs, vocab_size: int) -> Epoch:
    """The chapter's kind of loop."""
    model = build_model(params.model, vocab_size)
    seq2seq: Seq2Seq = model
    optimizer = torch.optim.Adam(model.parameters(), lr=params.training.learning_rate)
    sides = [
        padded([side(row).tolist() for row in range(len(pairs))]) for side in (pairs.source, pairs.target)
    ]
    data = TensorDataset(*sides[0], *sides[1])
    loader = DataLoader(data, batch_size=64, shuffle=True, generator=torch.Generator().manual_seed(0))

    def epoch() -> int:
        model.train()
        num_tokens = 0
        for source, source_lengths, target, target_lengths in loader:
            optimizer.zero_grad()
            begin = torch.full((len(target), 1), BOS)
            target_in = torch.cat([begin, target[:, :-1]], dim=1)
            memory = seq2seq.encode(source, source_lengths)
            logits, _ = seq2seq.decode(target_in, memory, seq2seq.start(memory))
            masked_loss(logits, target, target_lengths).sum().backward()
            clip(model)
            optimizer.step()
            num_tokens += int(target_lengths.sum())
        return num_tokens

    return epoch


def padded(sentences: list[list[int]]) -> tuple[Tensor, Tensor]:
    """N sentences -> (N, NUM_STEPS) with EOS and PAD, and (N,) the lengths with EOS."""
    rows = [[*sentence, EOS][:NUM_STEPS] for sentence in sentences]
    full = [row + [PAD] * (NUM_STEPS - len(row)) for row in rows]
    return torch.tensor(full), torch.tensor([len(row) for row in rows])


def masked_loss(logits: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    """logits (B, T, V), target (B, T) -> (B,): the mean over all T steps, those behind the end counting zero."""
    is_real = torch.arange(target.size(1)) < lengths.unsqueeze(1)
    losses = functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
    return (losses * is_real).mean(dim=1)


def clip(model: nn.Module) -> None:
    """Scale the gradient down to CLIP_NORM."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    norm = torch.sqrt(sum(torch.sum(gradient**2) for gradient in gradients))  # type: ignore[arg-type]
    if norm > CLIP_NORM:
        for gradient in gradients:
            gradient[:] *= CLIP_NORM / norm


def rates(epochs: list[Epoch], num_epochs: int) -> Iterator[list[float]]:
    """Tokens per second of each, by turns, after the warm-up."""
    for number in range(WARM_UP_EPOCHS + num_epochs):
        found = []
        for epoch in epochs:
            began = time.perf_counter()
            num_tokens = epoch()
            found.append(num_tokens / (time.perf_counter() - began))
        if number >= WARM_UP_EPOCHS:
            yield found


def main() -> None:
    """Print the machine, the median rates and the median ratio of each model as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--example", type=Path, default=Path("examples/textbook"))
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    pairs = open_shards(arguments.example / "data/shards/train")
    tags = identity(Path(__file__).resolve().parents[1])
    result: dict[str, object] = {
        key: tags[key] for key in tags if key.startswith(("machine.", "version.torch"))
    }
    for path in sorted(arguments.example.glob("*/params.yaml")):
        params = load_params(TrainParams, path)
        torch.manual_seed(params.training.seed)
        epochs = [make(params, pairs, pairs.manifest["vocab_size"]) for make in (our_epochs, chapter_epochs)]
        found = list(rates(epochs, arguments.epochs))
        result[path.parent.name] = {
            "ours, tokens/s": round(statistics.median(ours for ours, _ in found)),
            "the chapter's loop, tokens/s": round(statistics.median(theirs for _, theirs in found)),
            "ratio": round(statistics.median(ours / theirs for ours, theirs in found), 3),
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
