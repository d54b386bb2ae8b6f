from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiers import examples
from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import BPE

from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.models.embedders.pieces import LONGEST_PIECE, Pieces, divisible

PARTS = [
    "a",
    "the",
    "ing",
    " ",
    "  ",
    "\n",
    "\t",
    "\r",
    "▁",
    "é",
    "日本",
    "\U0001f600",
    "<s>",
    "</s>",
    "<unk>",
    "<0x0A>",
    ".",
    "(",
    "x2",
    "don't",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return StaticEmbedder()._read_tokeniser().tokenizer


@pytest.fixture(scope="module")
def pieces(tokenizer: Tokenizer) -> Pieces:
    return Pieces(tokenizer)


def bpe(*tokens: str, **settings: object) -> Tokenizer:
    """A tokeniser of single bytes, the blank and some further tokens."""
    vocabulary = [*(f"<0x{byte:02X}>" for byte in range(256)), "▁", *tokens]
    settings = {"byte_fallback": True} | settings
    model = BPE({token: number for number, token in enumerate(vocabulary)}, [], **settings)
    made = Tokenizer(model)
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return made


@pytest.mark.requirement("I6")
@settings(max_examples=examples(2))
@given(st.lists(st.sampled_from(PARTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)).map("".join))
@example("")
@example(" ")
@example("x" * (LONGEST_PIECE + 1))
def test_the_tokens_of_the_pieces_are_those_of_the_text(tokenizer: Tokenizer, pieces: Pieces, text: str) -> None:
    tokens, count = pieces.tokens(text), pieces.count(text)

    if any(added in text for added in ("<s>", "</s>", "<unk>")):
        assert tokens is None is count
    else:
        assert tokens is not None
        assert count == len(tokens)
        assert tokens.tolist() == tokenizer.encode(text, add_special_tokens=False).ids


def test_many_texts_have_the_tokens_that_each_has_alone() -> None:
    model = StaticEmbedder()
    texts = ["a <s> mark", "two  blanks\n\nand lines", "", "two  blanks\n\nand lines"]

    alone = [model.tokenise([text])[0].tolist() for text in texts]
    assert [tokens.tolist() for tokens in model.tokenise(texts)] == alone


def test_the_bundled_vocabulary_is_divisible(tokenizer: Tokenizer) -> None:
    assert divisible(tokenizer)


def test_a_vocabulary_with_tokens_across_pieces_is_not_divisible() -> None:
    assert divisible(bpe("ab", "▁a"))
    assert not divisible(bpe("a▁"))
    assert not divisible(bpe("a\n"))
    assert not divisible(bpe("a", ".", "a."))
    assert not divisible(bpe("a", "'", "'a"))
    assert not divisible(bpe(byte_fallback=False))
    assert not divisible(bpe(dropout=0.5))


def test_a_tokeniser_that_cuts_by_rules_of_its_own_is_not_divisible() -> None:
    with_rules = bpe()
    with_rules.pre_tokenizer = pre_tokenizers.Whitespace()
    assert not divisible(with_rules)
    lower = bpe()
    lower.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Lowercase()])
    assert not divisible(lower)
    plain = bpe()
    plain.normalizer = None
    assert not divisible(plain)
    added = bpe("a", "b", "ab")
    added.add_tokens([AddedToken("a b", normalized=True)])
    assert added.encode("a▁b").tokens == ["▁a▁b"] != bpe("a", "b", "ab").encode("a▁b").tokens
    assert not divisible(added)
