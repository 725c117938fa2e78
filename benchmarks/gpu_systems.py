"""What `gpu.py` measures: the project's training step and Marian's, as functions that take all steps of a size."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from passerelle.config import ModelConfig, TrainingConfig
from passerelle.data.batch import Batch
from passerelle.data.pairs import SentencePairs
from passerelle.data.plan import Indices
from passerelle.data.ragged import Ragged, offsets_of
from passerelle.data.special import BOS, EOS, PAD
from passerelle.models import build_model
from passerelle.training.batches import load_batch, planned_steps, step_batches
from passerelle.training.group import Group
from passerelle.training.master import copy_to_model, make_master
from passerelle.training.step import train_step

SMOOTHING = 0.1
RATE = 1e-4
FIRST_WORD = max(PAD, BOS, EOS) + 1
NUM_RANDOM_PAIRS = 50_000
IGNORED = -100
"""Label of a position that the loss leaves out."""


@dataclass(frozen=True)
class Sizes:
    """Of a model and of the steps it takes."""

    model: ModelConfig
    vocab_size: int
    micro_batch_tokens: int
    num_steps: int
    micro_batches_per_step: int = 1

    def training(self, optimizer: str) -> TrainingConfig:
        """The project's training, in bfloat16, with this optimiser (muon or adam)."""
        return TrainingConfig(
            precision="bf16",
            optimizer=optimizer,  # type: ignore[arg-type]
            micro_batch_tokens=self.micro_batch_tokens,
            micro_batches_per_step=self.micro_batches_per_step,
            label_smoothing=SMOOTHING,
        )

    def steps(self, pairs: SentencePairs) -> list[list[Indices]]:
        """The first steps of the project's plan."""
        return list(islice(planned_steps(pairs, self.training("adam")), self.num_steps))

    def with_micro_batches(self, number: int) -> "Sizes":
        """As many micro-batches a step instead."""
        return replace(self, micro_batches_per_step=number)


def random_pairs(vocab_size: int) -> SentencePairs:
    """Sentence pairs of random words, about 25 tokens long as those of news are, the target a little longer."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.lognormal(3.1, 0.5, NUM_RANDOM_PAIRS), 2, 120).astype(np.int32)
    targets = np.clip(lengths * generator.normal(1.1, 0.15, NUM_RANDOM_PAIRS), 2, 126).astype(np.int32)
    sides = [
        Ragged(generator.integers(FIRST_WORD, vocab_size, side.sum(), dtype=np.int32), offsets_of(side))
        for side in (lengths, targets)
    ]
    return SentencePairs({"vocab_size": vocab_size}, (sides[0],), (sides[1],))


def host_batches(pairs: SentencePairs, steps: list[list[Indices]]) -> list[Batch]:
    """All micro-batches of all steps, on the CPU."""
    cpu = torch.device("cpu")
    return [load_batch(pairs, rows, cpu) for step in steps for rows in step]


def useful_flops(sizes: Sizes, batch: Batch) -> float:
    """Floating-point operations of the matrix products of forward and backward pass on the real tokens.

    Backward counts twice the forward; of the decoder's self-attention counts what the mask leaves.
    """
    model = sizes.model
    source = batch.source_lengths.double()
    rows = batch.target_positions // batch.target_in.size(1)
    target = rows.bincount(minlength=source.size(0)).double()
    width, inner = model.d_model, model.d_ff
    encoder = source * (8 * width**2 + 4 * width * inner) + 4 * width * source**2
    decoder = target * (12 * width**2 + 4 * width * inner) + source * 4 * width**2
    decoder += 2 * width * target**2 + 4 * width * source * target
    output = 2 * width * sizes.vocab_size * target
    return 3.0 * float((model.num_layers * (encoder + decoder) + output).sum())


def ours(
    sizes: Sizes,
    pairs: SentencePairs,
    device: torch.device,
    group: Group,
    *,
    optimizer: str,
    is_compiled: bool,
) -> Callable[[], None]:
    """The project's step, fed by its own loader."""
    config = sizes.training(optimizer)
    torch.manual_seed(0)
    model: nn.Module = build_model(sizes.model, sizes.vocab_size).to(device)
    master = make_master(model, config)
    model.to(torch.bfloat16)
    copy_to_model(master, model)
    if is_compiled:
        compile_layers(model.encoder, model.decoder)
    steps = sizes.steps(pairs)

    def run() -> None:
        for number, micro_batches in enumerate(steps):
            batches = step_batches(pairs, micro_batches, device, group)
            train_step(model, master, batches, step=number, rate=RATE, config=config, group=group)

    return run


def marian(
    sizes: Sizes, pairs: SentencePairs, device: torch.device, group: Group, *, is_compiled: bool
) -> Callable[[], None]:
    """Hugging Face's model under bfloat16 autocast, its loss as the library's users write it; alone."""
    from transformers import MarianConfig, MarianMTModel  # an optional dependency, and slow to import

    assert group.num_workers == 1
    model = MarianMTModel(
        MarianConfig(
            vocab_size=sizes.vocab_size,
            d_model=sizes.model.d_model,
            encoder_layers=sizes.model.num_layers,
            decoder_layers=sizes.model.num_layers,
            encoder_attention_heads=sizes.model.num_heads,
            decoder_attention_heads=sizes.model.num_heads,
            encoder_ffn_dim=sizes.model.d_ff,
            decoder_ffn_dim=sizes.model.d_ff,
            activation_function="relu",
            dropout=sizes.model.dropout,
            attention_dropout=sizes.model.dropout,
            max_position_embeddings=512,
            scale_embedding=True,
            use_cache=False,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            forced_eos_token_id=None,
            decoder_start_token_id=BOS,
            attn_implementation="sdpa",
        )
    ).to(device)
    model.train()
    if is_compiled:
        compile_layers(model.model.encoder.layers, model.model.decoder.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), fused=True)
    steps = sizes.steps(pairs)

    def run() -> None:
        for micro_batches in steps:
            for rows in micro_batches:
                marian_loss(model, load_batch(pairs, rows, device)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
            optimizer.step()
            optimizer.zero_grad()

    return run


def marian_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Label-smoothed cross-entropy, the mean over the batch's target tokens."""
    labels = torch.full((batch.target_in.numel(),), IGNORED, device=batch.target_in.device)
    labels = labels.index_copy(0, batch.target_positions, batch.target_out)
    positions = torch.arange(batch.source.size(1), device=batch.source.device)
    with torch.autocast(batch.source.device.type, torch.bfloat16):
        logits = model(
            input_ids=batch.source,
            attention_mask=(positions < batch.source_lengths.unsqueeze(1)).long(),
            decoder_input_ids=batch.target_in,
        ).logits
    return functional.cross_entropy(
        logits.flatten(0, 1).float(), labels, ignore_index=IGNORED, label_smoothing=SMOOTHING
    )


def compile_layers(*stacks: nn.ModuleList) -> None:
    """Compile each layer in place, for batches of any shape."""
    for stack in stacks:
        for layer in stack:
            layer.compile(dynamic=True)


SYSTEMS: dict[str, Callable[[Sizes, SentencePairs, torch.device, Group], Callable[[], None]]] = {
    "ours": partial(ours, optimizer="adam", is_compiled=False),
    "ours, compiled": partial(ours, optimizer="adam", is_compiled=True),
    "ours, Muon": partial(ours, optimizer="muon", is_compiled=False),
    "Marian": partial(marian, is_compiled=False),
    "Marian, compiled": partial(marian, is_compiled=True),
}
"""Name -> a function that builds the system and gives one that takes all the steps."""
