"""Full-text rows beside the texts that they were made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.words import fulltext
from speckit_memory.memory.store.tables.words.stale_words import among, compare_words
from speckit_memory.memory.store.writing import writer

Make = Callable[..., Document]


def fill(database: Database, documents: Sequence[Document]) -> None:
    with database.write() as txn:
        for each in documents:
            writer.put_document(txn, each, None, 1.0, None)


def put(database: Database, memory: int, title: str, body: str) -> None:
    """Has the full-text row of a memory hold these words."""
    with database.write() as txn:
        fulltext.delete(txn, memory)
        fulltext.insert(txn, [(memory, title, "", "", body)])


@pytest.mark.requirement("M14.words")
def test_words_of_another_text_are_told_in_whatever_they_differ(database: Database, document: Make) -> None:
    fill(database, [document(f"{key}.md", "alpha beta", title_tokens=("t",)) for key in "abcdef"])
    assert compare_words(database.reader()) == ([], 6, 6)
    put(database, 1, "t", "alpha beta")  # as it was
    put(database, 2, "t", "beta alpha")
    put(database, 3, "t", "alpha gamma")
    put(database, 4, "alpha", "t beta")
    put(database, 5, "t", "alpha beta beta")
    put(database, 6, "", "")
    found = compare_words(database.reader())
    assert (found.stale, found.remark) == ([2, 3, 4, 5, 6], "")
    assert found.faults[0] == "the full-text row of memory 2 holds other words than its text"


@pytest.mark.requirement("M14.words")
def test_of_many_words_a_part_is_compared_and_every_length(database: Database, document: Make) -> None:
    fill(database, [document(f"{number:02}.md", "word " * 200, title_tokens=("t",)) for number in range(50)])
    put(database, 37, "t", "word " * 199)
    put(database, 38, "t", "word " * 199 + "other")
    found = compare_words(database.reader(), most=2_100)
    assert (found.stale, found.compared, found.memories) == ([37], 10, 50)
    assert found.remark.startswith("the words of 10 of 50 full-text rows were compared, and the lengths of all")
    assert compare_words(database.reader(), most=None) == ([37, 38], 50, 50)
    assert compare_words(database.reader(), most=1) == ([37], 1, 50)  # one at least


@pytest.mark.requirement("M14.words")
def test_wrong_counts_keep_no_row_from_being_compared(database: Database, document: Make) -> None:
    fill(database, [document(f"{key}.md", "alpha beta", title_tokens=("t",)) for key in "abcd"])
    with database.write() as txn:
        txn.connection.execute("DELETE FROM token_counts WHERE memory_id = 1")
        txn.connection.execute("UPDATE token_counts SET rewritten = 1 WHERE memory_id = 2")
        txn.connection.execute("UPDATE token_counts SET title = 70 WHERE memory_id = 3")
    assert compare_words(database.reader(), most=None) == ([], 4, 4)
    for memory in (1, 2, 3):
        put(database, memory, "t", "alpha gamma")
    assert compare_words(database.reader(), most=None) == ([1, 2, 3], 4, 4)
    assert among(database.reader(), [2, 4]) == ([2], 2, 2)


@pytest.mark.requirement("M14.words")
def test_words_that_the_table_keeps_otherwise_are_no_fault(database: Database, document: Make) -> None:
    fill(database, [document("a.md", "Alpha"), document("b.md", "alpha\u2028beta gamma"), document("c.md", "one")])
    assert compare_words(database.reader()).stale == []
