"""Masking a head is as if its values were zero: the loss says so, sentence by sentence, by other means."""

import copy
from pathlib import Path

import pytest
import torch

from passerelle.corpus.clean import clean_text
from passerelle.data.special import BOS, EOS
from passerelle.decoding import forced
from passerelle.evaluation.head_importance import head_importance, masked_head
from passerelle.model_folder import LoadedModel
from passerelle.nn.recording import record_attention
from small_model import RECURRENT, SOURCES, TARGETS, small_model

NUM_HEADS, D_HEAD = 3, 8
TEXTS = SOURCES[:7], TARGETS[:7]
PLACES = [
    (kind, layer, head)
    for kind in ("encoder", "decoder_self", "cross")
    for layer in (0, 1)
    for head in range(3)
]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return small_model(tmp_path_factory.mktemp("small"))


@torch.inference_mode()
def loss(loaded: LoadedModel, sources: list[str], references: list[str]) -> tuple[float, int]:
    """Nats and tokens, one sentence and one token at a time."""
    total, number = 0.0, 0
    for source, reference in zip(sources, references, strict=True):
        ids = [*loaded.tokenizer.encode(clean_text(source, "en")), EOS]
        memory = loaded.model.encode(torch.tensor([ids]), torch.tensor([len(ids)]))
        state, token = loaded.model.start(memory), BOS
        for following in [*loaded.tokenizer.encode(clean_text(reference, "fr")), EOS]:
            logits, state = loaded.model.decode(torch.tensor([[token]]), memory, state)
            total -= float(logits[0, 0].double().log_softmax(-1)[following])
            number, token = number + 1, following
    return total, number


def without_values(loaded: LoadedModel, kind: str, layer: int, head: int) -> LoadedModel:
    """A copy whose head has values of zero, and so a zero output."""
    model = copy.deepcopy(loaded.model)
    stack = model.encoder if kind == "encoder" else model.decoder
    attention = stack[layer].cross_attention if kind == "cross" else stack[layer].self_attention
    with torch.no_grad():
        attention.value.weight[head * D_HEAD : (head + 1) * D_HEAD] = 0.0
        attention.value.bias[head * D_HEAD : (head + 1) * D_HEAD] = 0.0
    return LoadedModel(model, loaded.tokenizer, loaded.languages, "")


def test_masking_is_as_if_the_values_of_the_head_were_zero(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forced, "MOST_TOKENS", 40)  # several batches
    importance = head_importance(loaded, *TEXTS)
    total, num_tokens = loss(loaded, *TEXTS)
    assert importance.loss == pytest.approx(total / num_tokens, abs=1e-5)
    assert importance.num_sentences == 7
    assert [(h.kind, h.layer - 1, h.head - 1) for h in importance.heads] == PLACES
    for found, place in zip(importance.heads, PLACES, strict=True):
        masked, _ = loss(without_values(loaded, *place), *TEXTS)
        assert found.loss_increase == pytest.approx((masked - total) / num_tokens, abs=1e-5), place


def test_the_one_head_of_a_recurrent_model_is_masked_too(tmp_path: Path) -> None:
    recurrent = small_model(tmp_path, RECURRENT)
    importance = head_importance(recurrent, *TEXTS)
    [head] = importance.heads
    assert (head.kind, head.layer, head.head) == ("cross", 1, 1)
    assert abs(head.loss_increase) > 1e-4


def test_a_masked_head_attends_to_nothing_and_the_others_as_before(loaded: LoadedModel) -> None:
    source, lengths = torch.tensor([[7, 8, 9, EOS]]), torch.tensor([4])
    with torch.inference_mode():
        with record_attention(loaded.model) as before:
            loaded.model.encode(source, lengths)
        with masked_head(loaded.model, "encoder", 0, 1), record_attention(loaded.model) as within:
            loaded.model.encode(source, lengths)
        with record_attention(loaded.model) as after:
            loaded.model.encode(source, lengths)
    [seen], [masked] = before["encoder.0"], within["encoder.0"]
    assert not masked[:, 1].any()
    assert torch.equal(masked[:, [0, 2]], seen[:, [0, 2]])
    assert torch.equal(after["encoder.0"][0], seen)
    assert not torch.equal(within["encoder.1"][0], before["encoder.1"][0])


def test_sentences_without_text_are_left_out(loaded: LoadedModel) -> None:
    whole = head_importance(loaded, SOURCES[:2], TARGETS[:2])
    more = head_importance(loaded, [*SOURCES[:2], " ", "We"], [*TARGETS[:2], "Nous", ""])
    assert more == whole
    with pytest.raises(ValueError, match="no sentences with text to measure the heads on"):
        head_importance(loaded, [""], ["Nous"])
