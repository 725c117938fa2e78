"""The word vocabulary: what a word is, which are kept, and what comes back."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passerelle.data.special import BOS, EOS, PAD, UNK
from passerelle.data.tokenizer import Tokenizer, load_tokenizer
from passerelle.data.words import FORMAT, split_words
from small_corpus import SOURCES, TARGETS, learn


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """The words of the small corpus; "12", which both languages have, "Nobody" and "œuf" among them."""
    folder = tmp_path_factory.mktemp("words")
    return learn([*SOURCES, "Nobody!"], [*TARGETS, "Personne, non ?"], folder, kind="word", min_frequency=1)


def test_a_text_is_lower_cased_and_its_marks_are_split_off() -> None:
    assert split_words("I'm home.") == ["i'm", "home", "."]
    assert split_words("Où ça ?!  ÉTÉ,hiver... C'est-à-dire") == [
        *["où", "ça", "?", "!", "été", ",", "hiver", ".", ".", ".", "c'est-à-dire"]
    ]
    assert split_words("« va\u00a0: 3,5 »\u202f;") == ["«", "va", ":", "3", ",", "5", "»", ";"]
    assert split_words(" \u202f") == []


@given(st.text())
def test_splitting_neither_loses_nor_adds_a_character(text: str) -> None:
    assert "".join(split_words(text)) == "".join(text.lower().split())


def test_nothing_but_case_is_normalised() -> None:
    assert split_words("e\u0301 \u00e9 ß ﬁ ’") == ["e\u0301", "\u00e9", "ß", "ﬁ", "’"]


def kept(tokenizer: Tokenizer) -> list[str]:
    return tokenizer.pieces(range(tokenizer.vocab_size))


def test_a_word_is_kept_if_one_language_has_it_often_enough_and_the_most_frequent_come_first(
    tmp_path: Path,
) -> None:
    sources = ["b b b c e", "C x on y"]
    targets = ["f f a a", "d d x on z"]  # x, on: twice, but once in each language
    tokenizer = learn(sources, targets, tmp_path, kind="word", min_frequency=2)
    assert kept(tokenizer) == ["<pad>", "<unk>", "<s>", "</s>", "b", "a", "c", "d", "f"]
    assert learn(sources, targets, tmp_path, kind="word", min_frequency=3).vocab_size == 5
    # Once it is kept, its place is by its count in both.
    both = learn(["m n n n"], ["m m m m"], tmp_path, kind="word", min_frequency=3)
    assert kept(both)[4:] == ["m", "n"]


def test_a_vocabulary_has_at_most_the_size_asked_for(tmp_path: Path) -> None:
    numbered = [f"w{number:03} " * (1000 - number) for number in range(400)]
    tokenizer = learn(numbered, numbered, tmp_path, kind="word", vocab_size=300)
    assert tokenizer.vocab_size == 300
    assert kept(tokenizer)[4:] == [f"w{number:03}" for number in range(296)]


def test_special_ids_are_those_of_every_vocabulary(words: Tokenizer) -> None:
    assert words.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_a_text_that_spells_a_special_token_is_unknown(tmp_path: Path) -> None:
    odd = ["<s> </s> <pad> <unk> a"] * 3
    tokenizer = learn(odd, odd, tmp_path, kind="word")
    assert tokenizer.encode(odd[0]) == [UNK, UNK, UNK, UNK, 4]


def test_known_words_come_back_in_lower_case_with_marks_at_their_words(words: Tokenizer) -> None:
    for text in (*SOURCES, *TARGETS, "Personne, non.", "..., Nobody?!"):
        assert words.decode(words.encode(text)) == text.lower()
    assert words.decode(words.encode("Personne ! Non\u202f?")) == "personne! non?"


def test_an_unknown_word_is_unk(words: Tokenizer) -> None:
    ids = words.encode("Elle mange 13 pommes.")
    assert ids[2] == UNK
    assert words.decode(ids) == "elle mange <unk> pommes."


def test_decoding_skips_pad_bos_and_eos(words: Tokenizer) -> None:
    assert words.decode([BOS, *words.encode("Il mange."), EOS, PAD, PAD]) == "il mange."


def test_a_batch_is_encoded_as_its_texts_are(words: Tokenizer) -> None:
    texts = [*TARGETS, "", "?"]
    batch = words.encode_batch(texts)
    assert batch == [words.encode(text) for text in texts]
    assert words.decode_batch(batch) == [text.lower() for text in texts]
    assert words.encode_batch([]) == []


def test_the_same_text_gives_the_same_file(tmp_path: Path) -> None:
    first = learn(SOURCES, TARGETS, tmp_path, kind="word")
    content = (tmp_path / "tokenizer" / "tokenizer.model").read_bytes()
    assert learn(SOURCES, TARGETS, tmp_path, kind="word").sha256 == first.sha256
    assert (tmp_path / "tokenizer" / "tokenizer.model").read_bytes() == content
    assert json.loads(content)["words"] == kept(first)[4:]
    assert learn(SOURCES[:9], TARGETS[:9], tmp_path, kind="word").sha256 != first.sha256


def test_a_sample_of_the_sentences_is_learnt_from(tmp_path: Path) -> None:
    sources, targets = [f"s{number}" for number in range(50)], [f"t{number}" for number in range(50)]
    tokenizer = learn(sources, targets, tmp_path, kind="word", min_frequency=1, max_sentences=20)
    assert 4 + 15 < tokenizer.vocab_size <= 4 + 20


def test_the_words_of_the_real_corpus_survive(
    fra_eng_sample: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    tokenizer = learn(*fra_eng_sample, tmp_path, kind="word", vocab_size=100_000, min_frequency=1)
    for texts in fra_eng_sample:
        batch = tokenizer.encode_batch(texts)
        assert UNK not in {index for ids in batch for index in ids}
        back = [split_words(text) for text in tokenizer.decode_batch(batch)]
        assert back == [split_words(text) for text in texts]


def test_text_without_a_frequent_word_is_refused_with_the_key_to_change(tmp_path: Path) -> None:
    message = r"^tokenizer.min_frequency is 7, but no word in .*train.parquet is so frequent: 3 times at most"
    with pytest.raises(ValueError, match=message):
        learn(["a a a b"], ["a a c c"], tmp_path, kind="word", min_frequency=7)
    with pytest.raises(ValueError, match=r"train.parquet: no sentences to learn a vocabulary from"):
        learn([], [], tmp_path, kind="word")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("{", r"tokenizer.model: not valid JSON \(.*\); run stage tokenizer again"),
        ('{"words": []}', r"format is None, but this version reads 'passerelle words 1'"),
        (json.dumps({"format": FORMAT}), r"has no list of words"),
        (json.dumps({"format": FORMAT, "words": [1]}), r"has no list of words"),
        (json.dumps({"format": FORMAT, "words": ["a", "b", "a"]}), r"a word stands twice in its list"),
        (json.dumps({"format": FORMAT, "words": ["a", "<unk>"]}), r"or is a special one"),
        (
            json.dumps({"format": FORMAT, "words": ["a", "two\nlines"]}),
            r"'two\\nlines' is no word in lower case",
        ),
        (json.dumps({"format": FORMAT, "words": ["A"]}), r"'A' is no word in lower case"),
        (json.dumps({"format": FORMAT, "words": [""]}), r"'' is no word in lower case"),
        (json.dumps({"format": FORMAT, "words": ["\ud800"]}), r"can't encode character '\\ud800'"),
        ('{"words": ' + "[" * 99_999, r"not valid JSON \(.*recursion.*\); run stage tokenizer again"),
    ],
)
def test_a_damaged_model_is_refused(model: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_text(model, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_tokenizer(tmp_path)
