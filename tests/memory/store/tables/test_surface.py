"""Full-text rows of words as they are written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.words import surface
from speckit_memory.memory.store.tables.words.stale_words import compare_words
from speckit_memory.memory.store.writing import writer

Make = Callable[..., Document]


def put(database: Database, document: Document) -> None:
    with database.write() as txn:
        writer.put_document(txn, document, None, 1.0, None)


@pytest.mark.requirement("C2.typed")
@pytest.mark.parametrize(
    ("phrases", "ids"),
    [
        (["fused"], [1]),
        (["RANKS", "and"], [1, 2]),
        (["and the ranks"], [2]),
        (["ranks_and"], [1]),
        (['the "ranks'], [2]),
        (["title", "fused"], [1]),
        (["fuse"], []),
        (["caf\N{LATIN SMALL LETTER E WITH ACUTE}"], [2]),
        (["cafe"], []),
        (["ranks\0and"], [1]),
        (["ranks \udcff and"], [1]),
        (["OR"], []),
        (["ranks*"], [1, 2]),
        (["?"], []),
        ([], []),
    ],
)
def test_every_phrase_is_held_as_it_is_written(
    database: Database, document: Make, phrases: list[str], ids: list[int]
) -> None:
    put(database, document("a.md", "fused ranks, and scores", title="A title"))
    put(database, document("b.md", "scores and the Ranks of a caf\N{LATIN SMALL LETTER E WITH ACUTE}"))

    assert surface.holding(database.reader(), phrases, 9).tolist() == ids


def test_the_first_are_found(database: Database, document: Make) -> None:
    for key in "abcd":
        put(database, document(f"{key}.md", "ranks"))

    assert surface.holding(database.reader(), ["ranks"], 2).tolist() == [1, 2]


def test_a_row_follows_its_text(database: Database, document: Make) -> None:
    put(database, document("a.md", "fused ranks"))
    put(database, document("a.md", "merged ranks"))
    assert surface.holding(database.reader(), ["fused"], 9).tolist() == []
    assert surface.holding(database.reader(), ["merged"], 9).tolist() == [1]
    with database.write() as txn:
        writer.delete_memories(txn, [1])
    assert surface.holding(database.reader(), ["merged"], 9).tolist() == []


@pytest.mark.requirement("M14.words")
def test_rows_with_other_words_than_their_texts_are_told(database: Database, document: Make) -> None:
    for key in "abcd":
        put(database, document(f"{key}.md", "alpha beta", title="t"))
    with database.write() as txn:
        for memory, title, body in ((2, "t", "beta alpha"), (3, "alpha", "t beta"), (4, "t", "alpha beta")):
            surface.delete(txn, memory)
            txn.connection.execute(
                "INSERT INTO surface_fts (rowid, title, body) VALUES (?, ?, ?)", (memory, title, body)
            )

    assert compare_words(database.reader()).stale == [2, 3]
