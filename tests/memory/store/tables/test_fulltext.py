from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.records import Chunk, Document
from speckit_memory.memory.store.tables.words import fulltext
from speckit_memory.memory.store.writing import writer

EVEN = (1.0, 1.0, 1.0, 1.0)


def fill(database: Database, *documents: tuple[str, str, str, str]) -> None:
    """One memory per (title, triggers, path, body), with ids from 1."""
    with database.write() as txn:
        for number, fields in enumerate(documents, 1):
            title, triggers, path, body = (tuple(field.split()) for field in fields)
            document = Document(
                f"k{number}",
                "t",
                "b",
                str(number),
                chunks=(Chunk("c", tokens=body),),
                title_tokens=title,
                trigger_tokens=triggers,
                path_tokens=path,
            )
            writer.put_document(txn, document, None, 1.0, None)


def found(database: Database, *tokens: str, limit: int = 99, allowed: list[int] | None = None) -> list[int]:
    scope = None if allowed is None else np.array(allowed, np.int64)
    ids, scores = fulltext.match(database.reader(), tokens, EVEN, limit, scope)
    assert ids.dtype == np.int64
    assert scores.dtype == np.float64
    assert (scores > 0).all()
    return [int(id_) for id_ in ids]


@pytest.mark.requirement("C2.or")
def test_any_of_the_tokens_in_any_field_matches(database: Database) -> None:
    fill(database, ("one", "", "", ""), ("", "two", "", ""), ("", "", "three", ""), ("", "", "", "four"))
    assert sorted(found(database, "one", "two", "three", "four", "five")) == [1, 2, 3, 4]
    assert found(database, "five") == found(database) == []


@pytest.mark.requirement("C2.positive")
def test_scores_are_the_weighted_bm25_of_the_field(database: Database) -> None:
    fill(
        database,
        ("alpha", "", "", "x y"),
        ("", "alpha", "", "x y"),
        ("", "", "alpha", "x y"),
        ("", "", "", "x y alpha"),
        ("", "", "", "x y z"),
        *[("", "", "", "u v w")] * 5,
    )
    ids, scores = fulltext.match(database.reader(), ["alpha"], (10.0, 5.0, 2.0, 1.0), 99)
    idf = math.log((10 - 4 + 0.5) / (4 + 0.5))
    weighted = [idf * w * 2.2 / (w + 1.2 * (0.25 + 0.75 * 3 / 3.0)) for w in (10.0, 5.0, 2.0, 1.0)]
    assert ids.tolist() == [1, 2, 3, 4]
    assert scores.tolist() == pytest.approx(weighted)


@pytest.mark.requirement("C2")
def test_equal_scores_are_ordered_by_id_and_cut_there(database: Database) -> None:
    fill(database, *[("", "", "", "same words")] * 9)
    assert found(database, "same") == list(range(1, 10))
    assert found(database, "same", limit=3) == [1, 2, 3]
    assert found(database, "same", limit=3, allowed=[9, 7, 5, 3]) == [3, 5, 7]
    assert found(database, "same", allowed=[]) == []


def test_order_does_not_depend_on_the_order_of_tokens_or_their_repetition(database: Database) -> None:
    fill(database, ("", "", "", "a b"), ("", "", "", "a a c"), ("", "", "", "c"))
    first = fulltext.match(database.reader(), ["a", "c"], EVEN, 9)
    second = fulltext.match(database.reader(), ["c", "a", "c"], EVEN, 9)
    assert first[0].tolist() == second[0].tolist()
    assert first[1].tolist() == pytest.approx(second[1].tolist())


TOKENS = [
    "req-006",
    "c++",
    "c#",
    ".net",
    "user_id",
    "a/b",
    "v1.2.3",
    "node.js",
    "@scope/pkg",
    "x=1",
    "50%",
    "日本",
    "本語",
    "カナ",
    "한국",
    "über",
    "é",
    "e\u0301",
    "naïve",
    "ﬁ",
    "ß",
    "ς",
    "σ",
    "αβγ",
    "привет",
    "מלים",
    "नमस्ते",
    "ไทย",
    "😀",
    "👨\u200d👩",
    "\u00ad",
    "\u200b",
    "\ue000",
    "\u0378",
    "\x1b",
    "\x7f",
    "and",
    "or",
    "not",
    "near",
    "NEAR",
    "AND",
    "title",
    "body:x",
    "*",
    "^",
    '"',
    "'",
    '""',
    "(",
    ")",
    "{x}",
    "[y]",
    ":",
    "+",
    "-",
    "\\",
    "--",
    ";",
    "a\tb",
    "1",
    "٣",
    "²",
    "Ⅷ",
    "∑",
]


@pytest.mark.requirement("C2.or")
def test_every_token_is_found_as_itself_and_as_nothing_else(database: Database) -> None:
    fill(database, *[("", "", "", "other words here")] * 3)
    with database.write() as txn:
        for token in TOKENS:
            document = Document(f"token {token}", "t", "b", "h", chunks=(Chunk("c", tokens=(token,)),))
            writer.put_document(txn, document, None, 1.0, None)
    folded = {"NEAR": "near", "AND": "and"}
    for number, token in enumerate(TOKENS, 4):
        same = [n for n, other in enumerate(TOKENS, 4) if folded.get(other, other) == folded.get(token, token)]
        expected = same if token not in {"ς", "σ"} else sorted({TOKENS.index("ς") + 4, TOKENS.index("σ") + 4})
        assert number in expected
        assert found(database, token) == expected, repr(token)


no_blanks = st.characters(exclude_categories=("Zs", "Zl", "Zp", "Cs"), exclude_characters="\0")
token_texts = st.text(no_blanks, min_size=1, max_size=6)


@given(token_texts)
def test_whatever_has_no_blank_is_found_again(new_database: Callable[[], Database], token: str) -> None:
    with new_database() as database, database.write() as txn:
        document = Document("k", "t", "b", "h", chunks=(Chunk("c", tokens=("before", token, "after")),))
        writer.put_document(txn, document, None, 1.0, None)
        fulltext.insert(txn, [(99, "", "", "", "something-longer-than-six-characters")])
        assert fulltext.match(txn.connection, [token], EVEN, 9)[0].tolist() == [1]


@given(st.lists(st.text(max_size=8), max_size=5))
@settings(max_examples=examples(0.34))
def test_no_query_is_a_syntax_error(new_database: Callable[[], Database], tokens: list[str]) -> None:
    with new_database() as database:
        fulltext.match(database.reader(), [token for token in tokens if token.isprintable()], EVEN, 5)


@pytest.mark.parametrize("token", ["", " ", "\t", "\0", "a\0b", "\u3000"])
def test_what_no_analyser_emits_finds_nothing(database: Database, token: str) -> None:
    fill(database, ("", "", "", "a b"))
    assert found(database, token) == []
    assert found(database, token, "b") == [1]
