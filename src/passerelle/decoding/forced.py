"""Forced decoding: the probability that a model gives to translations which somebody else chose.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

import math
from collections.abc import Sequence

import torch

from passerelle.corpus.clean import clean_text
from passerelle.data.special import BOS, EOS
from passerelle.decoding.translate import batches, encode_sources, pad_sources
from passerelle.model_folder import LoadedModel
from passerelle.nn.model import Seq2Seq

MOST_TOKENS = 2048
"""Padded tokens whose logits are held together: 64 MB in float32 for 8,000 words."""


@torch.inference_mode()
def forced_log_probs(
    model: Seq2Seq, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[tuple[float, ...]]:
    """Natural log-probability of each target token, given its source and the target tokens before it.

    Token ids; sources end with EOS, and so do targets, unless they are unfinished. Pairs are batched with others of
    like length; that changes the speed only. Raises ValueError where the model's probabilities are not numbers.
    """
    found: list[tuple[float, ...]] = [() for _ in targets]
    filled = [index for index, target in enumerate(targets) if target]
    lengths = [max(len(sources[index]), len(targets[index])) for index in filled]
    device = model.output.weight.device
    for positions in batches(lengths, MOST_TOKENS):
        indices = [filled[position] for position in positions]
        target_out, target_lengths = pad_sources([targets[index] for index in indices], device)
        target_in = target_out.roll(1, dims=1)
        target_in[:, 0] = BOS
        memory = model.encode(*pad_sources([sources[index] for index in indices], device))
        logits, _ = model.decode(target_in, memory, model.start(memory))  # (B, T, V)
        logits = logits.float()
        chosen = logits.gather(2, target_out.unsqueeze(2)).squeeze(2) - logits.logsumexp(2)  # (B, T)
        if chosen.isnan().any():
            raise ValueError("the model gives NaN for a probability; its weights are damaged: train it again")
        for index, row, length in zip(indices, chosen.tolist(), target_lengths.tolist(), strict=True):
            found[index] = tuple(row[:length])
    return found


def score(loaded: LoadedModel, sources: Sequence[str], targets: Sequence[str]) -> list[tuple[float, ...]]:
    """Natural log-probability of each token of the given translations, EOS last; both sides are cleaned first.

    A source without text has an empty translation (`translate`) and no other: then nothing has no tokens, and each
    token of a text has log-probability -inf. Raises ValueError like `forced_log_probs`.
    """
    cleaned = [clean_text(target, loaded.languages.target) for target in targets]
    target_ids = [[*ids, EOS] for ids in loaded.tokenizer.encode_batch(cleaned)]
    source_ids = encode_sources(loaded, sources)
    asked = [index for index, source in enumerate(source_ids) if source]
    forced = forced_log_probs(
        loaded.model, [source_ids[index] for index in asked], [target_ids[index] for index in asked]
    )
    found = [(-math.inf,) * len(target) if len(target) > 1 else () for target in target_ids]
    for index, log_probs in zip(asked, forced, strict=True):
        found[index] = log_probs
    return found
