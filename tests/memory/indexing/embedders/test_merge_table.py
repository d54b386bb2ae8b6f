"""Short texts are cut without the tokeniser's library, and exactly as by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiers import examples
from tokenizers import Tokenizer

from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.models.embedders.merge_table import LONGEST_PIECE, LONGEST_TEXT, MergeTable
from speckit_memory.memory.models.embedders.static import _TOKENIZER

ADDED = ("<s>", "</s>", "<unk>")
PARTS = [*ADDED, "a", "the", "ing", "er", " ", "  ", "\n", "\t", "\r", "▁", "é", "日本", "\U0001f600", "<0x0A>", "."]
DOCUMENTS = sorted((Path(__file__).parents[4] / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def file() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((StaticEmbedder()._data() / _TOKENIZER).read_bytes())
    return document


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return StaticEmbedder()._read_tokeniser().tokenizer


@pytest.fixture(scope="module")
def table(file: dict[str, Any]) -> MergeTable:
    made = MergeTable.of(file)
    assert made is not None
    return MergeTable.from_bytes(made.to_bytes())


def check(table: MergeTable, tokenizer: Tokenizer, text: str) -> None:
    cut = table.cut(text)
    if any(added in text for added in ADDED) or max(map(len, text.split()), default=0) >= LONGEST_PIECE:
        assert cut is None
    else:
        assert cut is not None
        assert cut.tolist() == tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.requirement("P10", "I6")
@settings(max_examples=examples(2))
@given(st.lists(st.sampled_from(PARTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)).map("".join))
@example("")
@example(" ")
@example("x" * LONGEST_PIECE)
@example("aa" * (LONGEST_PIECE // 2 - 1))
def test_any_text_is_cut_as_the_library_cuts_it(table: MergeTable, tokenizer: Tokenizer, text: str) -> None:
    check(table, tokenizer, text)


@pytest.mark.requirement("P10", "I6")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_the_documentation_is_cut_as_the_library_cuts_it(
    table: MergeTable, tokenizer: Tokenizer, document: Path
) -> None:
    text = document.read_text(encoding="utf-8")
    for start in range(0, len(text), LONGEST_TEXT):
        check(table, tokenizer, text[start : start + LONGEST_TEXT])


def test_what_is_long_or_no_text_is_left_to_the_library(table: MergeTable) -> None:
    assert table.cut("a " * (LONGEST_TEXT // 2)) is not None
    assert table.cut("a " * (LONGEST_TEXT // 2) + "a") is None
    assert table.cut("\ud800") is None


@pytest.mark.parametrize(
    "change",
    [
        {"pre_tokenizer": {"type": "Whitespace"}}, {"normalizer": None},
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}]}},
        *({"model": change} for change in ({"dropout": 0.5}, {"byte_fallback": False}, {"ignore_merges": True})),
        *({"model": change} for change in ({"type": "Unigram"}, {"end_of_word_suffix": "</w>"})),
        *({"token": token} for token in ("a▁", "a\n", "a<0x0A>")),
        {"added_tokens": [{"content": "<s>", "lstrip": True, "rstrip": False}]},
        {"added_tokens": [{"content": "a b", "lstrip": False, "rstrip": False, "normalized": True}]},
    ],
    ids=str,
)  # fmt: skip
def test_tokenisers_of_other_kinds_are_left_to_the_library(file: dict[str, Any], change: dict[str, Any]) -> None:
    model = file["model"] | change.get("model", {})
    if "token" in change:
        model |= {"vocab": model["vocab"] | {change["token"]: len(model["vocab"])}}
    others = {key: value for key, value in change.items() if key not in ("model", "token")}

    assert MergeTable.of({**file, **others, "model": model}) is None
