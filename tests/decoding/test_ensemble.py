"""Several models as one: the mean of their probabilities, whatever the models are."""

import math
from itertools import product
from pathlib import Path

import pytest
import torch

from changed_model import with_other_languages, with_other_words
from passerelle.config import DecodingConfig, ModelConfig
from passerelle.data.special import BOS, EOS
from passerelle.decoding.ensemble import Ensemble, load_ensemble
from passerelle.decoding.forced import forced_log_probs
from passerelle.decoding.translate import translate
from passerelle.model_folder import load_model
from passerelle.models import build_model
from small_model import RECURRENT, SOURCES, write_small_model
from table_model import WORDS, TableModel, pad, run_search

CONFIG = DecodingConfig(beam_size=3, max_length=9)
NARROW = ModelConfig(d_model=12, num_heads=3, num_layers=1, d_ff=20)
LAYERED = ModelConfig(name="bahdanau", d_model=10, num_layers=2, cell="lstm")


class OtherTable(TableModel):
    """Another random function of the same."""

    def logits(self, source: tuple[int, ...], prefix: tuple[int, ...]) -> torch.Tensor:
        return super().logits((99, *source), prefix)


@torch.no_grad()
def test_probabilities_are_the_mean_of_the_models() -> None:
    torch.manual_seed(3)
    models = [build_model(config, 19).eval() for config in (NARROW, LAYERED, NARROW)]
    source, lengths = pad([[5, 9, 16, EOS], [11, EOS]])
    target = torch.tensor([[BOS, 8, 4, 17, 6], [BOS, 5, 5, 9, 12]])
    together = Ensemble(models)
    memory = together.encode(source, lengths)
    logits, _ = together.decode(target, memory, together.start(memory))
    expected = torch.zeros(2, 5, 19)
    for model in models:
        memory = model.encode(source, lengths)
        expected += model.decode(target, memory, model.start(memory))[0].softmax(-1) / 3
    torch.testing.assert_close(logits.exp(), expected)
    torch.testing.assert_close(logits.softmax(-1), expected)


@torch.no_grad()
def test_memory_and_state_of_all_models_are_reordered() -> None:
    torch.manual_seed(5)
    together = Ensemble([build_model(config, 19).eval() for config in (NARROW, LAYERED)])
    source, lengths = pad([[5, 9, 16, EOS], [11, EOS], [7, 7, EOS]])
    target, index = torch.tensor([[BOS, 8, 4], [BOS, 5, 5], [BOS, 17, 9]]), torch.tensor([2, 0, 0])
    memory = together.encode(source, lengths)
    expected, _ = together.decode(target, memory, together.start(memory))
    _, state = together.decode(target[:, :2], memory, together.start(memory))
    step, _ = together.decode(target[index, 2:], memory.reorder(index), state.reorder(index))
    torch.testing.assert_close(step, expected[index, 2:])


def test_the_search_finds_the_optimum_of_the_mean() -> None:
    models = (TableModel(), OtherTable())
    source = [4, 6, EOS]

    def log_prob(ids: tuple[int, ...]) -> float:
        total = 0.0
        for length, token in enumerate(ids):
            steps = [
                model.logits(tuple(source), (BOS, *ids[:length])).double().softmax(-1) for model in models
            ]
            total += math.log(float(sum(step[token] for step in steps)) / 2)
        return total

    space = [(*words, EOS) for length in range(4) for words in product(WORDS, repeat=length)]
    best = max(space, key=lambda ids: log_prob(ids) / len(ids))
    [[found]] = run_search(Ensemble(models), [source], [4], beam_size=341)
    assert found.ids == best
    assert found.log_prob == pytest.approx(log_prob(best), abs=1e-5)


def test_a_model_with_itself_is_the_model(tmp_path: Path) -> None:
    folder = write_small_model(tmp_path)
    alone, twice = load_model(folder), load_ensemble([folder, folder])
    found, expected = translate(twice, SOURCES[:9], CONFIG), translate(alone, SOURCES[:9], CONFIG)
    assert [translation.ids for translation in found] == [translation.ids for translation in expected]
    assert [t.score for t in found] == pytest.approx([t.score for t in expected], abs=1e-5)
    assert twice.fingerprint == f"{alone.fingerprint}+{alone.fingerprint}"
    assert load_ensemble([folder]).model.state_dict().keys() == alone.model.state_dict().keys()


def test_models_of_different_kinds_translate_together(tmp_path: Path) -> None:
    folders = []
    for name, config in (("a", None), ("b", RECURRENT)):
        (tmp_path / name).mkdir()
        folders.append(write_small_model(tmp_path / name, *([config] if config else [])))
    loaded = load_ensemble(folders)
    for translation in translate(loaded, SOURCES[:9], CONFIG):
        [forced] = forced_log_probs(loaded.model, [translation.source_ids], [translation.ids])
        assert sum(forced) == pytest.approx(translation.log_prob, abs=1e-4)


def test_an_ensemble_has_no_hidden_states() -> None:
    models = Ensemble([TableModel(), OtherTable()])
    memory = models.encode(*pad([[4, EOS]]))
    with pytest.raises(NotImplementedError, match="no hidden states; ask it for logits"):
        models.decode_hidden(torch.tensor([[BOS]]), memory, models.start(memory))


def test_models_of_different_vocabularies_or_languages_are_refused(tmp_path: Path) -> None:
    folder = write_small_model(tmp_path)
    other = with_other_words(folder, tmp_path / "words")
    with pytest.raises(
        ValueError, match=r"words: its tokenizer is not that of .*model \(sha256 \w{12}…, not \w{12}…"
    ):
        load_ensemble([folder, other])
    german = with_other_languages(folder, tmp_path / "german", "en", "de")
    with pytest.raises(
        ValueError, match=r"german: translates en to de, but .*model en to fr; leave one of them out"
    ):
        load_ensemble([folder, german])
