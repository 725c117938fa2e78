"""BLEU while training: the same decoder, detokenisation and counts as stage `evaluate`, on validation sentences.

torch and the decoder are imported where they are used: the driver only says what workers are to measure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from passerelle.config import DecodingConfig, LanguagesConfig, ModelConfig, TrainParams
from passerelle.data.tokenizer import load_tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

GREEDY = DecodingConfig(beam_size=1)


@dataclass(frozen=True)
class ValidationBleu:
    """What every worker needs to measure it; can be pickled."""

    parquet: Path
    """The validation sentences; workers read it, so it is absolute."""
    tokenizer: Path
    model: ModelConfig
    languages: LanguagesConfig
    num_sentences: int
    """The first so many are translated, each worker its share."""

    def on(
        self, device: "torch.device", *, rank: int, num_workers: int, reduce: "Callable[[Tensor], None]"
    ) -> "Callable[[Mapping[str, Tensor]], float]":
        """A function of the parameters, by name, that all workers call together; 0 to 100.

        reduce adds up a tensor over the workers, in place. Translates in float32 like `evaluate`, whatever
        training computes in. Raises ValueError like `read_held_out`.
        """
        import torch
        from sacrebleu.metrics import BLEU

        from passerelle.decoding.translate import translate
        from passerelle.evaluation.corpus_statistics import score_of, statistics
        from passerelle.evaluation.held_out import read_held_out
        from passerelle.model_folder import LoadedModel
        from passerelle.models import build_model

        valid = read_held_out(self.parquet, self.languages.target)
        own = slice(rank, self.num_sentences, num_workers)
        sources, references = valid.sources[own], valid.references[own]
        tokenizer = load_tokenizer(self.tokenizer)
        model = build_model(self.model, tokenizer.vocab_size).to(device).eval()
        loaded = LoadedModel(model, tokenizer, self.languages, fingerprint="")

        def bleu(parameters: "Mapping[str, Tensor]") -> float:
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    parameter.copy_(parameters[name])
            metric = BLEU()
            totals = torch.zeros(2 + 2 * metric.max_ngram_order, dtype=torch.float64, device=device)
            if sources:  # a worker may have none
                hypotheses = [translation.text for translation in translate(loaded, sources, GREEDY)]
                totals += torch.from_numpy(statistics(metric, hypotheses, references).sum(0)).to(device)
            reduce(totals)
            return score_of(metric, totals.cpu().numpy())

        return bleu


def validation_bleu(params: TrainParams, parquet: Path, tokenizer: Path) -> ValidationBleu | None:
    """As the parameters ask for it; tokenizer is its folder."""
    if not params.training.bleu_sentences:
        return None
    return ValidationBleu(
        parquet.resolve(), tokenizer.resolve(), params.model, params.languages, params.training.bleu_sentences
    )
