"""The tokenizer loses nothing."""

import hashlib
import io
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from passerelle.config import TokenizerConfig
from passerelle.data.special import BOS, EOS, PAD, UNK
from passerelle.data.tokenizer import Tokenizer, load_tokenizer, train_tokenizer
from small_corpus import SOURCES, TARGETS, VOCAB_SIZE, learn

WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" "), min_size=1))


def foreign_model(**options: object) -> bytes:
    """A SentencePiece model with that library's own defaults for what `options` leaves open."""
    model = io.BytesIO()
    sentences = iter(["a model of another project"])
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences, model_writer=model, hard_vocab_limit=False, minloglevel=3, **options
    )
    return model.getvalue()


@settings(deadline=None)
@given(words=WORDS)
def test_words_with_single_spaces_survive(tokenizer: Tokenizer, words: list[str]) -> None:
    text = " ".join(words)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@settings(deadline=None)
@given(text=st.text())
def test_any_text_survives_without_unk(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not {PAD, UNK, BOS, EOS} & set(ids)


@pytest.mark.parametrize(
    "text",
    [
        "Elle a trouvé 12 œufs.", "😀 👩‍👩‍👧", "שלום, Привет, 你好", "e\u0301", "\ufffd \ufdd0 \U0010ffff",
        "▁", "▁▁ ▁a▁", "a ▁", " ▁", "▅", "⁇", " ⁇ ", "<s>", "</s> a", "<pad><unk>", "<0x41>", "\x00a\x00",
        "", " ", " a", "a ", "  a   b  ", "\t", "a\nb\r\n", "\u00a0: \u202f!",
    ],
)  # fmt: skip
def test_odd_text_survives(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not {PAD, UNK, BOS, EOS} & set(ids)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_the_real_corpus_survives(
    kind: str, fra_eng_sample: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    tokenizer = learn(*fra_eng_sample, tmp_path, kind=kind, vocab_size=4000)
    texts = fra_eng_sample[0] + fra_eng_sample[1]
    batch = tokenizer.encode_batch(texts)
    assert tokenizer.decode_batch(batch) == texts
    assert UNK not in {index for ids in batch for index in ids}


def test_a_batch_is_encoded_as_its_texts_are(tokenizer: Tokenizer) -> None:
    texts = [*TARGETS, "a▁b", "", "😀"]
    batch = tokenizer.encode_batch(texts)
    assert batch == [tokenizer.encode(text) for text in texts]
    assert tokenizer.decode_batch(batch) == texts
    assert tokenizer.encode_batch([]) == []


def test_decoding_skips_pad_bos_and_eos(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("Il mange.")
    assert tokenizer.decode([BOS, *ids, EOS, PAD, PAD]) == "Il mange."


def test_pieces_spell_the_text(tokenizer: Tokenizer) -> None:
    assert "".join(tokenizer.pieces(tokenizer.encode("Il mange le pain."))) == "▁Il▁mange▁le▁pain."
    assert tokenizer.pieces(tokenizer.encode("😀"))[1:] == ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    assert tokenizer.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_digits_are_pieces_of_their_own(tokenizer: Tokenizer) -> None:
    assert tokenizer.pieces(tokenizer.encode("12 pommes"))[1:3] == ["1", "2"]


def test_a_lone_surrogate_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match=r"can't encode character '\\ud800' in position 1"):
        tokenizer.encode_batch(["fine", "b\ud800"])


def test_the_hash_is_that_of_the_file(small_train: Path, tmp_path: Path) -> None:
    train_tokenizer(small_train, tmp_path / "t", TokenizerConfig(vocab_size=VOCAB_SIZE))
    model = (tmp_path / "t" / "tokenizer.model").read_bytes()
    by_folder, by_file = load_tokenizer(tmp_path / "t"), load_tokenizer(tmp_path / "t" / "tokenizer.model")
    assert by_folder.sha256 == by_file.sha256 == hashlib.sha256(model).hexdigest()
    assert by_folder.vocab_size == VOCAB_SIZE


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (b"not a model", r"tokenizer.model: not a SentencePiece model; run stage tokenizer again"),
        (b"", r"tokenizer.model: not a SentencePiece model"),
        (foreign_model(), r"PAD, UNK, BOS, EOS must be 0, 1, 2, 3, but are \(-1, 0, 1, 2\)"),
        (foreign_model(pad_id=0, unk_id=1, bos_id=2, eos_id=3), r"the model has no byte pieces"),
    ],
)
def test_a_foreign_model_is_refused(model: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(model)
    with pytest.raises(ValueError, match=message):
        load_tokenizer(tmp_path)


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tokenizer.model: no such file; run stage tokenizer first"):
        load_tokenizer(tmp_path / "tokenizer.model")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"<0x41>", b"<0x4\xff>", r"tokenizer.model: not a SentencePiece model; run stage tokenizer again"),
        (b"<0x41>", b"<0x4x>", r"tokenizer.model: (the model has no byte pieces|not a SentencePiece model)"),
    ],
)
def test_a_model_with_another_piece_is_refused(old: bytes, new: bytes, message: str, tmp_path: Path) -> None:
    tokenizer_model = tmp_path / "tokenizer.model"
    learn(SOURCES, TARGETS, tmp_path, vocab_size=VOCAB_SIZE)
    content = (tmp_path / "tokenizer/tokenizer.model").read_bytes()
    assert old in content
    tokenizer_model.write_bytes(content.replace(old, new))
    with pytest.raises(ValueError, match=message):
        load_tokenizer(tokenizer_model)
