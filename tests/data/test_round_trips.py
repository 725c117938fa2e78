"""Any text, cleaned, comes back from its tokens; any tokens come back from their shards."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from passerelle.config import ShardsConfig
from passerelle.corpus.clean import clean_text
from passerelle.data.pairs import open_shards, verify_shards
from passerelle.data.shards import write_shards
from passerelle.data.special import BOS, EOS, PAD, UNK
from passerelle.data.tokenizer import Tokenizer
from small_corpus import write_train

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


@settings(deadline=None, max_examples=200)
@given(text=texts, language=st.sampled_from(["fr", "en"]))
def test_a_cleaned_text_comes_back_and_is_never_unknown(
    tokenizer: Tokenizer, text: str, language: str
) -> None:
    cleaned = clean_text(text, language)
    ids = tokenizer.encode(cleaned)
    assert tokenizer.decode(ids) == cleaned
    assert not {PAD, UNK, BOS, EOS} & set(ids)


@settings(deadline=None, max_examples=40)
@given(
    pairs=st.lists(st.tuples(texts, texts), min_size=1, max_size=20),
    max_tokens=st.integers(4, 60),
    shard_bytes=st.integers(1, 2000),
)
def test_shards_give_back_the_ids_and_count_what_was_cut(
    tokenizer: Tokenizer, pairs: list[tuple[str, str]], max_tokens: int, shard_bytes: int
) -> None:
    sides = [tokenizer.encode_batch(side) for side in zip(*pairs, strict=True)]
    with tempfile.TemporaryDirectory() as name:
        train = write_train(Path(name, "train.parquet"), *map(list, zip(*pairs, strict=True)))
        folder = Path(name, "shards")
        manifest = write_shards(
            train, folder, tokenizer, ShardsConfig(max_tokens=max_tokens, shard_bytes=shard_bytes)
        )
        verify_shards(folder)
        shards = open_shards(folder)
        found = [(shards.source(row).tolist(), shards.target(row).tolist()) for row in range(len(shards))]
    assert found == [
        (source[:max_tokens], target[:max_tokens]) for source, target in zip(*sides, strict=True)
    ]
    assert manifest["source_truncated"] == sum(len(ids) > max_tokens for ids in sides[0])
    assert manifest["target_truncated"] == sum(len(ids) > max_tokens for ids in sides[1])
