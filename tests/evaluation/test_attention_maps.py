"""The dumped attention is what decoding saw, step by step, in every layer and head."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import Tensor

from passerelle.config import DecodingConfig, ModelConfig
from passerelle.data.special import BOS, EOS
from passerelle.decoding.translate import Translation, encode_sources, pad_sources, translate
from passerelle.evaluation import attention_maps as module
from passerelle.evaluation.attention_maps import AXES, attention_map, attention_maps, write_attention_map
from passerelle.model_folder import LoadedModel
from passerelle.nn.recording import record_attention
from small_model import CONFIG, RECURRENT, SOURCES, small_model

DECODING = DecodingConfig(beam_size=3, max_length=7)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return small_model(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def translation(loaded: LoadedModel) -> Translation:
    return translate(loaded, [SOURCES[4], SOURCES[7] * 2], DECODING)[0]


def stepwise_attention(loaded: LoadedModel, translation: Translation) -> dict[str, list[Tensor]]:
    """What is recorded while the translation's tokens are fed one at a time."""
    source, lengths = pad_sources(encode_sources(loaded, [translation.source]), torch.device("cpu"))
    with record_attention(loaded.model) as tape:
        memory = loaded.model.encode(source, lengths)
        state = loaded.model.start(memory)
        for token in (BOS, *translation.ids[:-1]):
            _, state = loaded.model.decode(torch.tensor([[token]]), memory, state)
    return tape


@torch.inference_mode()
def test_weights_are_those_that_stepwise_decoding_saw(loaded: LoadedModel, translation: Translation) -> None:
    attention = attention_map(loaded, translation)
    tape = stepwise_attention(loaded, translation)
    for layer in range(CONFIG.num_layers):
        [seen] = tape[f"encoder.{layer}"]
        np.testing.assert_allclose(attention.weights["encoder"][layer], seen[0], atol=1e-5)
    for layer in range(CONFIG.num_layers):
        for step in range(len(translation.ids)):
            seen = tape[f"cross.{layer}"][step][0, :, 0]
            np.testing.assert_allclose(attention.weights["cross"][layer, :, step], seen, atol=1e-5)
            seen = tape[f"decoder_self.{layer}"][step][0, :, 0]
            weights = attention.weights["decoder_self"][layer, :, step]
            np.testing.assert_allclose(weights[:, : step + 1], seen, atol=1e-5)
            assert not weights[:, step + 1 :].any()


def test_shapes_count_layers_heads_and_tokens_without_padding(
    loaded: LoadedModel, translation: Translation
) -> None:
    attention = attention_map(loaded, translation)
    num_source = len(loaded.tokenizer.encode(translation.source)) + 1
    num_target = len(translation.ids)
    assert {kind: weights.shape for kind, weights in attention.weights.items()} == {
        "encoder": (2, 3, num_source, num_source),
        "decoder_self": (2, 3, num_target, num_target),
        "cross": (2, 3, num_target, num_source),
    }
    for weights in attention.weights.values():
        assert weights.dtype == np.float32
        np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-6)


@torch.inference_mode()
def test_a_recurrent_model_has_its_alignment_alone_as_stepwise_decoding_saw_it(tmp_path: Path) -> None:
    recurrent = small_model(tmp_path, RECURRENT)
    translation, _ = translate(recurrent, [SOURCES[4], SOURCES[7] * 2], DECODING)
    attention = attention_map(recurrent, translation)
    tape = stepwise_attention(recurrent, translation)
    assert list(attention.weights) == ["cross"]
    weights = attention.weights["cross"]
    num_source = len(recurrent.tokenizer.encode(translation.source)) + 1
    assert weights.shape == (1, 1, len(translation.ids), num_source)
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-6)
    for step, seen in enumerate(tape["cross.0"]):
        np.testing.assert_allclose(weights[0, 0, step], seen[0, 0, 0], atol=1e-5)
    write_attention_map(attention, tmp_path, "01-we")
    assert load_file(tmp_path / "01-we.safetensors").keys() == {"cross"}
    content = json.loads((tmp_path / "01-we.json").read_text(encoding="utf-8"))
    assert content["axes"].keys() == {"cross"}


def test_tokens_name_the_axes(loaded: LoadedModel, translation: Translation) -> None:
    attention = attention_map(loaded, translation)
    assert "".join(attention.source_tokens[:-1]) == "▁" + translation.source.replace(" ", "▁")
    assert attention.source_tokens[-1] == "</s>"
    assert attention.target_tokens == ("<s>", *attention.predicted_tokens[:-1])
    assert attention.predicted_tokens == tuple(loaded.tokenizer.pieces(translation.ids))


def test_a_finished_translation_predicts_the_end_last(loaded: LoadedModel) -> None:
    ids = (*loaded.tokenizer.encode("Nous vendons"), EOS)
    text = "Nous vendons"
    attention = attention_map(loaded, Translation("We sell", text, text, ids, -1.0, -1.0, True))
    assert attention.predicted_tokens[-1] == "</s>"
    assert "</s>" not in attention.target_tokens


def test_files_hold_the_weights_and_what_they_mean(
    loaded: LoadedModel, translation: Translation, tmp_path: Path
) -> None:
    attention = attention_map(loaded, translation)
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        write_attention_map(attention, folder, "01-we")
    weights = load_file(tmp_path / "a" / "01-we.safetensors")
    content = json.loads((tmp_path / "a" / "01-we.json").read_text(encoding="utf-8"))
    assert set(weights) == set(AXES)
    for kind, array in weights.items():
        np.testing.assert_array_equal(array, attention.weights[kind])
        named = content["axes"][kind][2:]
        assert array.shape[2:] == tuple(len(content[name]) for name in named)
    assert (content["source"], content["translation"]) == (translation.source, translation.text)
    for name in ("01-we.safetensors", "01-we.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_sentence_without_text_is_refused(loaded: LoadedModel) -> None:
    [empty] = translate(loaded, ["  "], DECODING)
    with pytest.raises(ValueError, match=r"'  ': no text, so nothing to attend to; leave the sentence out"):
        attention_map(loaded, empty)


@pytest.mark.parametrize("config", [CONFIG, RECURRENT], ids=lambda config: config.name)
def test_a_batch_gives_each_sentence_what_it_has_alone(
    config: ModelConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_SENTENCES", 3)
    loaded = small_model(tmp_path, config)
    translations = translate(loaded, [SOURCES[4], SOURCES[7] * 2, "We", SOURCES[1], SOURCES[2]], DECODING)
    together = list(attention_maps(loaded, translations))
    assert [attention.source for attention in together] == [
        translation.source for translation in translations
    ]
    for attention, translation in zip(together, translations, strict=True):
        alone = attention_map(loaded, translation)
        assert replace(attention, weights={}) == replace(alone, weights={})
        for kind, weights in alone.weights.items():
            np.testing.assert_allclose(attention.weights[kind], weights, atol=1e-5)
