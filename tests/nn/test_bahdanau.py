"""The recurrent model against loops over the formulas in float64, and in what is its own alone."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from passerelle.nn.bahdanau import Alignment, Bahdanau, CellKind
from passerelle.nn.recording import record_attention
from small_networks import EMBEDDING as E
from small_networks import HIDDEN as D
from small_networks import LENGTHS, NUM_LAYERS, SOURCE, TARGET, V, logits, make_bahdanau

KINDS = list(product(("gru", "lstm"), ("additive", "dot")))


@pytest.fixture(params=KINDS, ids="-".join)
def model(request: pytest.FixtureRequest) -> Bahdanau:
    return make_bahdanau(*request.param)


def cell_by_formula(weights: list[Tensor], x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """One step of one sentence: Cho et al. 2014 (as torch has it), Hochreiter & Schmidhuber 1997 (with forget gate)."""
    of_x, of_h = weights[0] @ x + weights[2], weights[1] @ state[0] + weights[3]
    if len(state) == 1:
        reset, keep = (torch.sigmoid(of_x[at] + of_h[at]) for at in (slice(0, D), slice(D, 2 * D)))
        candidate = torch.tanh(of_x[2 * D :] + reset * of_h[2 * D :])
        return (keep * state[0] + (1 - keep) * candidate,)
    take, forget, candidate, give = (of_x + of_h).view(4, D)
    memory = torch.sigmoid(forget) * state[1] + torch.sigmoid(take) * torch.tanh(candidate)
    return torch.sigmoid(give) * torch.tanh(memory), memory


def layers_by_formula(layers: list[list[Tensor]], x: Tensor, states: list[tuple[Tensor, ...]]) -> Tensor:
    """One step of all layers: changes states, returns the last layer's hidden state."""
    for number, weights in enumerate(layers):
        states[number] = cell_by_formula(weights, x, states[number])
        x = states[number][0]
    return x


def attention_by_formula(model: Bahdanau, query: Tensor, keys: list[Tensor]) -> list[float]:
    attention = model.cross_attention
    if hasattr(attention, "score"):
        hidden = [torch.tanh(attention.query.weight @ query + attention.key.weight @ key) for key in keys]
        scores = [math.exp(attention.score.weight[0] @ one) for one in hidden]
    else:
        scores = [math.exp(query @ key / math.sqrt(D)) for key in keys]
    return [score / sum(scores) for score in scores]


def by_formulas(model: Bahdanau, cell: str, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (T, V) and alignment (T, S) of one sentence, one vector at a time."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    encoder = [[getattr(model.encoder, f"{name}_l{layer}") for name in names] for layer in range(NUM_LAYERS)]
    decoder = [[getattr(cells, name) for name in names] for cells in model.decoder]
    zero = torch.zeros(D, dtype=torch.float64)
    states = [(zero,) if cell == "gru" else (zero, zero)] * NUM_LAYERS
    embedded = model.source_embedding.weight[source] * math.sqrt(E)
    keys = [layers_by_formula(encoder, x, states) for x in embedded]
    query, steps, alignment = keys[-1], [], []
    for token in target:
        alignment.append(attention_by_formula(model, query, keys))
        context = sum((weight * key for weight, key in zip(alignment[-1], keys, strict=True)), zero)
        x = torch.cat((context, model.target_embedding.weight[token] * math.sqrt(E)))
        query = layers_by_formula(decoder, x, states)
        steps.append(model.output.weight @ query)
    return torch.stack(steps), torch.tensor(alignment, dtype=torch.float64)


@pytest.mark.parametrize(("cell", "alignment"), KINDS)
def test_logits_and_alignment_equal_a_loop_over_the_formulas(cell: CellKind, alignment: Alignment) -> None:
    model = make_bahdanau(cell, alignment)
    with torch.no_grad(), record_attention(model) as tape:
        found = logits(model, SOURCE, LENGTHS, TARGET)
        weights = torch.cat(tape["cross.0"], dim=2)[:, 0]  # (B, T, S)
        for row, length in enumerate(LENGTHS.tolist()):
            expected, attended = by_formulas(model, cell, SOURCE[row, :length], TARGET[row])
            torch.testing.assert_close(found[row], expected)
            torch.testing.assert_close(weights[row, :, :length], attended)


@pytest.mark.parametrize(("cell", "num_parts"), [("gru", 1), ("lstm", 2)])
def test_the_chapters_sizes_give_the_chapters_shapes(cell: CellKind, num_parts: int) -> None:
    model = Bahdanau(
        10, embedding_width=8, hidden_width=16, num_layers=2, dropout=0.0, cell=cell, alignment="additive",
        share_embeddings=False,
    )  # fmt: skip
    tokens = torch.zeros(4, 7, dtype=torch.long)
    memory = model.encode(tokens, torch.full((4,), 7))
    found, state = model.decode(tokens, memory, model.start(memory))
    assert found.shape == (4, 7, 10)
    assert memory.values.shape == (4, 7, 16)
    for layers in (memory.last, state.layers):
        assert [[part.shape for part in layer] for layer in layers] == [[(4, 16)] * num_parts] * 2


def test_alignment_sums_to_one_at_each_step_and_leaves_out_padding(model: Bahdanau) -> None:
    with torch.no_grad(), record_attention(model) as tape:
        logits(model, SOURCE, LENGTHS, TARGET)
    assert list(tape) == ["cross.0"]
    assert [weights.shape for weights in tape["cross.0"]] == [(3, 1, 1, 7)] * 5
    is_padding = torch.arange(7) >= LENGTHS[:, None]
    for weights in tape["cross.0"]:
        torch.testing.assert_close(weights.sum(-1), torch.ones(3, 1, 1, dtype=torch.float64))
        assert weights[:, 0, 0][is_padding].abs().max() == 0.0
        assert weights[:, 0, 0][~is_padding].min() > 0.0


@pytest.mark.parametrize("width", [E, D], ids=["separate", "shared"])
@pytest.mark.parametrize(("cell", "alignment"), KINDS)
def test_the_gradient_reaches_every_parameter(cell: CellKind, alignment: Alignment, width: int) -> None:
    model = make_bahdanau(cell, alignment, width=width)
    logits(model, SOURCE, LENGTHS, TARGET).logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0.0, name


def test_shared_embeddings_are_one_parameter_and_separate_ones_are_three() -> None:
    shared, separate = make_bahdanau(width=D), make_bahdanau()
    assert shared.output.weight is shared.source_embedding.weight is shared.target_embedding.weight
    names = {name for name, _ in separate.named_parameters()} - {
        name for name, _ in shared.named_parameters()
    }
    assert names == {"target_embedding.weight", "output.weight"}


@pytest.mark.parametrize("num_layers", [1, 2])
def test_dropout_is_keyed_by_the_seed_and_rests_in_evaluation(num_layers: int) -> None:
    def logits_of(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return logits(model, SOURCE, LENGTHS, TARGET)

    model = make_bahdanau(num_layers=num_layers)
    with torch.no_grad():
        assert torch.equal(logits_of(1), logits_of(2))
        model.train()
        assert torch.equal(logits_of(1), logits_of(1))
        assert not torch.allclose(logits_of(1), logits_of(2))


@pytest.mark.parametrize(("cell", "alignment"), KINDS)
@torch.inference_mode()
def test_bf16_gives_nearly_the_logits_of_float32(cell: CellKind, alignment: Alignment) -> None:
    model = make_bahdanau(cell, alignment)
    expected = logits(model.float(), SOURCE, LENGTHS, TARGET)
    found = logits(model.bfloat16(), SOURCE, LENGTHS, TARGET)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.0)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_recurrent_matrices_begin_orthogonal_and_an_lstm_begins_by_keeping_its_memory(cell: CellKind) -> None:
    model = Bahdanau(
        V, embedding_width=E, hidden_width=D, num_layers=2, dropout=0.0, cell=cell, alignment="dot",
        share_embeddings=False,
    )  # fmt: skip
    parameters = {**dict(model.encoder.named_parameters()), **dict(model.decoder.named_parameters())}
    gates = {name: parameter.detach().unflatten(0, (-1, D)) for name, parameter in parameters.items()}
    for name, gate in gates.items():
        if "weight_hh" in name:
            torch.testing.assert_close(
                gate @ gate.mT, torch.eye(D).expand(len(gate), D, D), atol=1e-5, rtol=0
            )
        if "bias" in name:
            begin = [0.0, 1.0, 0.0, 0.0] if cell == "lstm" and "bias_ih" in name else [0.0] * len(gate)
            assert gate.mean(1).tolist() == begin


def test_an_embedding_of_another_width_cannot_be_shared_with_the_output() -> None:
    with pytest.raises(ValueError, match=r"embedding_width must be hidden_width=6, but is 4"):
        Bahdanau(
            V, embedding_width=E, hidden_width=D, num_layers=1, dropout=0.0, cell="gru", alignment="dot",
            share_embeddings=True,
        )  # fmt: skip


def test_an_unknown_cell_or_alignment_is_refused() -> None:
    with pytest.raises(ValueError, match="cell must be gru or lstm, but is rnn"):
        make_bahdanau("rnn")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="alignment must be additive or dot, but is bilinear"):
        make_bahdanau(alignment="bilinear")  # type: ignore[arg-type]
