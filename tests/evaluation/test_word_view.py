"""Words made of pieces: every sum and mean by hand, and rows that still sum to one."""

import numpy as np
import pytest
from numpy.typing import NDArray

from passerelle.evaluation.attention_maps import AttentionMap
from passerelle.evaluation.word_view import merge, piece_view, word_view, words_of

SOURCE = ("▁I", "'", "m", "▁home", ".", "</s>")
GIVEN = ("<s>", "▁Je", "▁suis", "▁ch", "ez", "▁", "moi")
CHOSEN = ("▁Je", "▁suis", "▁ch", "ez", "▁", "moi", "</s>")


def random_weights(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), size=shape[:-1]).astype(np.float32)


@pytest.fixture
def attention() -> AttentionMap:
    weights = {
        "encoder": random_weights(2, 3, 6, 6),
        "decoder_self": random_weights(2, 3, 7, 7),
        "cross": random_weights(2, 3, 7, 6),
    }
    return AttentionMap("I'm home.", "Je suis chez moi", SOURCE, GIVEN, CHOSEN, weights)


@pytest.mark.parametrize(
    ("pieces", "texts", "word_of"),
    [
        (SOURCE, ("I'm", "home.", "</s>"), [0, 0, 0, 1, 1, 2]),
        (GIVEN, ("<s>", "Je", "suis", "chez", "moi"), [0, 1, 2, 3, 3, 4, 4]),
        (("<s>", "ez", "▁moi"), ("<s>", "ez", "moi"), [0, 1, 2]),
        (("▁", "<0xC3>", "<0x89>", "t", "é"), ("Été",), [0, 0, 0, 0, 0]),
        (("▁", "<0xC3>"), ("\ufffd",), [0, 0]),
        (("▁", "▁a"), ("␣", "a"), [0, 1]),
        (("</s>",), ("</s>",), [0]),
    ],
)
def test_a_word_begins_with_its_space(
    pieces: tuple[str, ...], texts: tuple[str, ...], word_of: list[int]
) -> None:
    words = words_of(pieces, are_words=False)
    assert words.texts == texts
    assert words.word_of.tolist() == word_of


def test_pieces_of_a_tokenizer_of_words_are_words() -> None:
    words = words_of(("i'm", "home", ".", "<unk>", "</s>"), are_words=True)
    assert words.texts == ("i'm", "home", ".", "<unk>", "</s>")
    assert words.word_of.tolist() == [0, 1, 2, 3, 4]


def test_keys_are_summed_and_queries_averaged() -> None:
    weights = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.1, 0.4]], dtype=np.float32)
    queries = words_of(("▁a", "▁b", "c"), are_words=False)
    keys = words_of(("▁d", "e", "▁f"), are_words=False)
    expected = [[0.3, 0.7], [(0.6 + 0.6) / 2, (0.4 + 0.4) / 2]]
    np.testing.assert_allclose(merge(weights, queries, keys), expected, atol=1e-7)


def test_rows_of_words_sum_to_one_in_every_layer_and_head(attention: AttentionMap) -> None:
    shapes = {"encoder": (2, 3, 3, 3), "decoder_self": (2, 3, 5, 5), "cross": (2, 3, 5, 3)}
    for kind, shape in shapes.items():
        view = word_view(attention, kind)
        assert view.weights.shape == shape
        assert view.weights.dtype == np.float32
        np.testing.assert_allclose(view.weights.sum(-1), 1.0, atol=1e-6)


def test_rows_of_cross_attention_are_named_after_what_was_chosen_there(attention: AttentionMap) -> None:
    assert word_view(attention, "cross").queries == ("Je", "suis", "chez", "moi", "</s>")
    assert word_view(attention, "cross").keys == ("I'm", "home.", "</s>")
    assert word_view(attention, "decoder_self").queries == ("<s>", "Je", "suis", "chez", "moi")
    chez = attention.weights["cross"][:, :, 2:4].mean(2)
    np.testing.assert_allclose(
        word_view(attention, "cross").weights[:, :, 2, 1], chez[..., 3:5].sum(-1), atol=1e-6
    )


def test_causal_attention_of_words_stays_causal(attention: AttentionMap) -> None:
    causal = np.tril(attention.weights["decoder_self"])
    attention.weights["decoder_self"][:] = causal / causal.sum(-1, keepdims=True)
    weights = word_view(attention, "decoder_self").weights
    np.testing.assert_array_equal(np.triu(weights, 1), 0.0)


def test_the_view_of_pieces_is_what_the_model_saw(attention: AttentionMap) -> None:
    view = piece_view(attention, "cross")
    np.testing.assert_array_equal(view.weights, attention.weights["cross"])
    assert view.keys == ("I", "'", "m", "home", ".", "</s>")
    assert view.queries == ("Je", "suis", "ch", "ez", "␣", "moi", "</s>")


def test_words_of_a_tokenizer_of_words_stay_as_they_are() -> None:
    weights = {"cross": random_weights(1, 1, 2, 3)}
    attention = AttentionMap("go on", "va", ("go", "on", "</s>"), ("<s>", "va"), ("va", "</s>"), weights)
    view = word_view(attention, "cross")
    np.testing.assert_allclose(view.weights, weights["cross"], atol=1e-7)
    assert (view.queries, view.keys) == (("va", "</s>"), ("go", "on", "</s>"))
