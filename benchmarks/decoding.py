"""Sentences translated in a second: ours against Hugging Face's `generate` and CTranslate2, greedy and by beam.

    pip install -e '.[bench]' && python benchmarks/decoding.py [--sentences 2000] [--rounds 5] [--beams 1 5]

Every system has a Transformer of one size with random weights (ours and CTranslate2 the same ones, Hugging Face a
Marian model) and translates the same source tokens, about as long as those of fra-eng. The length of each translation
is laid down, so that all have the same to do. Batches are of like source lengths, as a user makes them, who does not
know the others; CTranslate2, which cannot be told a length for each sentence, gets batches of one target length, where
no sentence waits for another. The systems run by turns within each round, in random order, each with the batch size
that was its best in a round before.
Prints the machine, medians and ratios as JSON.
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from passerelle.config import ModelConfig
from passerelle.data.special import BOS, EOS, PAD, UNK
from passerelle.decoding.search import search
from passerelle.decoding.translate import pad_sources
from passerelle.identity import identity
from passerelle.models import build_model
from passerelle.nn.positions import sinusoidal_encoding
from passerelle.nn.transformer import Transformer

VOCAB_SIZE = 8000
CONFIG = ModelConfig(d_model=256, num_heads=4, num_layers=3, d_ff=1024, dropout=0.0)
LONGEST = 64
NUM_CORES = 2
BATCH_SIZES = (32, 64, 128, 256)
SPECIAL = {PAD: "<pad>", UNK: "<unk>", BOS: "<s>", EOS: "</s>"}
WORDS = {SPECIAL.get(index, str(index)): index for index in range(VOCAB_SIZE)}
"""What CTranslate2 calls each token id."""
Batch = tuple[list[int], list[list[int]]]
"""The lengths that the translations shall have, and sources of token ids, EOS last."""
Outputs = list[tuple[int, ...]]
Translate = Callable[[list[Batch]], Outputs]
System = Callable[[int], Translate]
"""From the beam size to a function that translates batches."""


def workload(num_sentences: int, batch_size: int, is_by_target: bool) -> list[Batch]:
    """The same sentences in any batches: of one target length, or of like source lengths; the longest first."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.normal(9.5, 3.2, num_sentences).round(), 3, 40).astype(int)
    targets = np.clip((1.1 * lengths + generator.normal(0, 1.5, num_sentences)).round(), 3, 44).astype(int)
    sources = [[*generator.integers(4, VOCAB_SIZE, length - 1).tolist(), EOS] for length in lengths]
    by = (targets, lengths) if is_by_target else (lengths, np.arange(num_sentences))
    batches: list[Batch] = []
    for index in sorted(range(num_sentences), key=lambda index: (-by[0][index], -by[1][index])):
        is_full = not batches or len(batches[-1][0]) == batch_size
        if is_full or (is_by_target and batches[-1][0][0] != targets[index]):
            batches.append(([], []))
        batches[-1][0].append(int(targets[index]))
        batches[-1][1].append(sources[index])
    return batches


@cache
def own_model() -> Transformer:
    """With an end of sentence that is never likely, since its logit is always 0."""
    torch.manual_seed(0)
    model = build_model(CONFIG, VOCAB_SIZE).eval()
    assert isinstance(model, Transformer)
    with torch.no_grad():
        model.output.weight[EOS] = 0.0
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def own_batch(beam_size: int, batch: Batch) -> Outputs:
    lengths, sources = batch
    source, source_lengths = pad_sources(sources, torch.device("cpu"))
    found = search(
        own_model(),
        source,
        source_lengths,
        beam_size=beam_size,
        length_penalty=1.0,
        max_lengths=torch.tensor(lengths),
    )
    return [best.ids for [best] in found]


def own(beam_size: int) -> Translate:
    """In this process, with its two threads."""
    return lambda batches: [ids for batch in batches for ids in own_batch(beam_size, batch)]


def own_processes(pool: ProcessPoolExecutor, beam_size: int) -> Translate:
    """In processes that have been started before, each with one thread."""
    return lambda batches: [
        ids for found in pool.map(partial(own_batch, beam_size), batches) for ids in found
    ]


def hugging_face(beam_size: int) -> Translate:
    from transformers import LogitsProcessorList, MarianConfig, MarianMTModel

    torch.manual_seed(0)
    model = MarianMTModel(
        MarianConfig(
            vocab_size=VOCAB_SIZE,
            d_model=CONFIG.d_model,
            encoder_layers=CONFIG.num_layers,
            decoder_layers=CONFIG.num_layers,
            encoder_attention_heads=CONFIG.num_heads,
            decoder_attention_heads=CONFIG.num_heads,
            encoder_ffn_dim=CONFIG.d_ff,
            decoder_ffn_dim=CONFIG.d_ff,
            activation_function="relu",
            max_position_embeddings=LONGEST,
            pad_token_id=PAD,
            eos_token_id=EOS,
            bos_token_id=BOS,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
        )
    ).eval()

    def ending_at(lengths: list[int]) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        last = torch.tensor(lengths).repeat_interleave(beam_size)

        def process(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            is_last = last == ids.size(1)  # the first of them is BOS
            scores[:, EOS] = -torch.inf
            scores[is_last] = -torch.inf
            scores[is_last, EOS] = 0.0
            return scores

        return process

    def translate(batches: list[Batch]) -> Outputs:
        outputs: Outputs = []
        for lengths, sources in batches:
            source, source_lengths = pad_sources(sources, torch.device("cpu"))
            with torch.inference_mode():
                found = model.generate(
                    input_ids=source,
                    attention_mask=(torch.arange(source.size(1)) < source_lengths[:, None]).long(),
                    num_beams=beam_size,
                    do_sample=False,
                    max_new_tokens=max(lengths),
                    logits_processor=LogitsProcessorList([ending_at(lengths)]),
                )
            outputs += [tuple(row[1 : row.index(EOS) + 1]) for row in found.tolist()]
        return outputs

    return translate


def ctranslate2_model(folder: Path) -> None:
    """Our weights as a model of CTranslate2, in float32."""
    import ctranslate2

    model = own_model()
    spec = ctranslate2.specs.TransformerSpec.from_config(
        (CONFIG.num_layers, CONFIG.num_layers), CONFIG.num_heads, pre_norm=True
    )
    positions = sinusoidal_encoding(LONGEST, CONFIG.d_model).numpy()
    for side, embeddings in (
        (spec.encoder, spec.encoder.embeddings[0]),
        (spec.decoder, spec.decoder.embeddings),
    ):
        embeddings.weight = model.source_embedding.weight.detach().numpy()
        side.scale_embeddings = True
        side.position_encodings.encodings = positions
    _fill_norm(spec.encoder.layer_norm, model.encoder_norm)
    _fill_norm(spec.decoder.layer_norm, model.decoder_norm)
    spec.decoder.projection.weight = model.output.weight.detach().numpy()
    for layer, ours in zip(spec.encoder.layer, model.encoder, strict=True):
        _fill_self_attention(layer.self_attention, ours)
        _fill_feed_forward(layer.ffn, ours)
    for layer, ours in zip(spec.decoder.layer, model.decoder, strict=True):
        _fill_self_attention(layer.self_attention, ours)
        cross = ours.cross_attention
        _fill_norm(layer.attention.layer_norm, ours.around_cross_attention.norm)
        _fill_linear(layer.attention.linear[0], [cross.query])
        _fill_linear(layer.attention.linear[1], [cross.key, cross.value])
        _fill_linear(layer.attention.linear[2], [cross.output])
        _fill_feed_forward(layer.ffn, ours)
    spec.register_source_vocabulary(list(WORDS))
    spec.register_target_vocabulary(list(WORDS))
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def _fill_self_attention(spec: Any, layer: Any) -> None:
    attention = layer.self_attention
    _fill_norm(spec.layer_norm, layer.around_self_attention.norm)
    _fill_linear(spec.linear[0], [attention.query, attention.key, attention.value])
    _fill_linear(spec.linear[1], [attention.output])


def _fill_feed_forward(spec: Any, layer: Any) -> None:
    _fill_norm(spec.layer_norm, layer.around_feed_forward.norm)
    _fill_linear(spec.linear_0, [layer.feed_forward.inner])
    _fill_linear(spec.linear_1, [layer.feed_forward.outer])


def _fill_norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = norm.weight.detach().numpy(), norm.bias.detach().numpy()


def _fill_linear(spec: Any, parts: Sequence[Any]) -> None:
    """One layer of several beside each other; ours has no bias for keys."""
    spec.weight = torch.cat([part.weight for part in parts]).detach().numpy()
    biases = [torch.zeros(part.weight.size(0)) if part.bias is None else part.bias for part in parts]
    spec.bias = torch.cat(biases).detach().numpy()


def ctranslate2_system(folder: Path, num_workers: int, beam_size: int) -> Translate:
    """So many workers share the two cores; batches are queued all at once."""
    import ctranslate2

    translator = ctranslate2.Translator(
        str(folder),
        device="cpu",
        compute_type="float32",
        inter_threads=num_workers,
        intra_threads=NUM_CORES // num_workers,
    )

    words = list(WORDS)

    def translate(batches: list[Batch]) -> Outputs:
        waiting = []
        for lengths, sources in batches:
            waiting += translator.translate_batch(
                [[words[index] for index in source] for source in sources],
                beam_size=beam_size,
                min_decoding_length=lengths[0],
                max_decoding_length=lengths[0],
                max_batch_size=len(sources),
                asynchronous=True,
            )
        return [tuple(WORDS[word] for word in result.result().hypotheses[0]) for result in waiting]

    return translate


def systems(pool: ProcessPoolExecutor, folder: Path) -> dict[str, System]:
    """Those that are installed."""
    found: dict[str, System] = {
        "ours, 1 process x 2 threads": own,
        "ours, 2 processes x 1 thread": partial(own_processes, pool),
    }
    if find_spec("transformers"):
        found["Hugging Face generate, 2 threads"] = hugging_face
    if find_spec("ctranslate2"):
        ctranslate2_model(folder)
        for num_workers in (1, 2):
            name = f"CTranslate2 float32, {num_workers} x {NUM_CORES // num_workers}"
            found[name] = partial(ctranslate2_system, folder, num_workers)
    return found


def seconds(translate: Translate, batches: list[Batch]) -> float:
    """Of translating them all; refuses outputs of another length than was laid down."""
    began = time.perf_counter()
    outputs = translate(batches)
    taken = time.perf_counter() - began
    if [len(ids) for ids in outputs] != [length for lengths, _ in batches for length in lengths]:
        sys.exit("error: a system did not make translations of the length laid down")
    return taken


def measure(name: str, systems: dict[str, System], beam_size: int, arguments: argparse.Namespace) -> Any:
    """Sentences a second of each system, at the batch size that is its best."""
    translators = {system: make(beam_size) for system, make in systems.items()}
    work = {
        system: {
            size: workload(arguments.sentences, size, system.startswith("CTranslate2"))
            for size in BATCH_SIZES
        }
        for system in systems
    }
    for system, translate in translators.items():
        translate(work[system][BATCH_SIZES[0]])  # warms up, and gives each process time to load its model
    tried = {
        system: {size: seconds(translate, batches) for size, batches in work[system].items()}
        for system, translate in translators.items()
    }
    best = {system: min(times, key=times.__getitem__) for system, times in tried.items()}
    times: dict[str, list[float]] = {system: [] for system in translators}
    generator = random.Random(0)
    for number in range(arguments.rounds):
        for system in generator.sample(list(translators), len(translators)):
            times[system].append(seconds(translators[system], work[system][best[system]]))
            rate = arguments.sentences / times[system][-1]
            print(f"{name}, round {number + 1}: {system}: {rate:,.0f} sentences/s", file=sys.stderr)
    first, second, *_ = times
    return {
        system: {
            "sentences per second": round(arguments.sentences / statistics.median(taken)),
            "batch size": best[system],
            "of all batch sizes": {size: round(arguments.sentences / t) for size, t in tried[system].items()},
            "ours, 1 process, to it": _ratio(taken, times[first]),
            "ours, 2 processes, to it": _ratio(taken, times[second]),
        }
        for system, taken in times.items()
    }


def _ratio(theirs: list[float], ours: list[float]) -> float:
    return round(statistics.median(a / b for a, b in zip(theirs, ours, strict=True)), 2)


def main() -> None:
    """Print machine, rates and ratios as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    arguments = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    torch.set_num_threads(NUM_CORES)
    tags = identity(Path(__file__).resolve().parents[1])
    result: dict[str, Any] = {
        "machine": {key: tags[key] for key in tags if key.startswith(("machine.", "version.torch", "git."))}
    }
    context = get_context("spawn")
    with (
        ProcessPoolExecutor(NUM_CORES, context, torch.set_num_threads, (1,)) as pool,
        tempfile.TemporaryDirectory() as temporary,
    ):
        found = systems(pool, Path(temporary))
        for beam_size in arguments.beams:
            name = f"beam {beam_size}" if beam_size > 1 else "greedy"
            result[name] = measure(name, found, beam_size, arguments)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
