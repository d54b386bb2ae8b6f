"""What SQL means in SQLite holds for a store in PostgreSQL: the rules of which a translation could lose the meaning."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.writing.writer import put_document

MEANINGS = {
    # a backslash in LIKE stands for itself
    r"SELECT 'a\b' LIKE 'a\b', 'a\%b' LIKE 'a\%', 'ab' LIKE 'a\b', '\' LIKE '%\', 'A' LIKE 'a'": (1, 1, 0, 1, 1),
    "SELECT 'a%b' LIKE 'a' || '!' || '%b' ESCAPE '!', 'axb' LIKE 'a!%b' ESCAPE '!', 1 WHERE 'a_b' LIKE 'a_b'": (
        1,
        0,
        1,
    ),
    # classes and single characters of GLOB, the signs of LIKE in it, and its case
    r"SELECT '#12' GLOB '#[0-9]*', '#x' GLOB '#[0-9]*', 'x' GLOB '[^0-9]', 'axb' GLOB 'a_b', 'a%b' GLOB 'a%b', "
    r"'ab' GLOB 'a?', 'a.b' GLOB 'a.b', 'axb' NOT GLOB 'a.b', 'A' GLOB 'a', 'a\b' GLOB 'a\b'": (
        *(1, 0, 1, 0, 1, 1, 1, 1, 0, 1),
    ),
    # the greatest and the least of values are NULL if one of these is
    "SELECT max(1, NULL), min(1, NULL, 0), max(1, 3, 2), min(0.5, 2), max(max(1, 2), coalesce(NULL, 5))": (
        *(None, None, 3, 0.5, 5),
    ),
    # NULL comes first, and last if the order is descending
    "SELECT group_concat(n, ' ' ORDER BY v, n), group_concat(n, ' ' ORDER BY v DESC, n), "
    "group_concat(n, ' ' ORDER BY v DESC NULLS FIRST, n) "
    "FROM (SELECT 'a' AS n, 2 AS v UNION ALL SELECT 'b', NULL UNION ALL SELECT 'c', 1)": ("b c a", "a c b", "b a c"),
}


def test_a_statement_means_the_same_in_both_engines(database: Database) -> None:
    assert {sql: rows(database.reader(), sql)[0] for sql in MEANINGS} == MEANINGS


@pytest.mark.parametrize(("pattern", "found"), [("ä", False), ("B", True), ("%\\", True), ("b\\b", False)])
def test_a_pattern_of_a_caller_ignores_the_case_of_ascii_letters_alone(
    database: Database, pattern: str, found: bool
) -> None:
    with database.write() as txn:
        txn.connection.execute("INSERT INTO meta VALUES ('Ä', ?), ('Ö', 'b')", ("\\",))
    chosen = "SELECT 1 FROM meta WHERE key = 'Ä' AND (key LIKE ?1 OR value LIKE ?1) OR key = 'Ö' AND value LIKE ?1"
    assert bool(rows(database.reader(), chosen, (pattern,))) is found


@pytest.mark.parametrize("nulls", [False, True])
def test_placeholders_keep_their_order_where_a_rule_repeats_them(database: Database, nulls: bool) -> None:
    sql = "SELECT max(coalesce(?, 0), ?), ? || ?2"
    assert rows(database.reader(), sql, (None if nulls else 7, 5, "x")) == [(5 if nulls else 7, "x5")]


def test_a_row_that_conflicts_is_changed_by_its_own_values_and_the_new_ones(database: Database) -> None:
    sql = (
        "INSERT INTO embedding_cache VALUES ('m', 'h', x'', ?, ?) ON CONFLICT DO UPDATE SET "
        "created_at = created_at + excluded.created_at, last_used_at = max(last_used_at, excluded.last_used_at) "
        "WHERE last_used_at < ?3 RETURNING created_at, last_used_at"
    )
    with database.write() as txn:
        assert rows(txn.connection, sql, (1.0, 5.0, 9.0)) == [(1.0, 5.0)]
        assert rows(txn.connection, sql, (2.0, 4.0, 9.0)) == [(3.0, 5.0)]
        assert rows(txn.connection, sql, (2.0, 9.0, 5.0)) == []


def test_a_row_that_is_replaced_keeps_nothing_of_the_former_one(
    database: Database, document: Callable[..., Document]
) -> None:
    with database.write() as txn:
        memory = put_document(txn, document("a.md", "text"), None, 0.0, None).id
        txn.connection.execute("INSERT INTO archivals VALUES (?, 'unused', 1.0, 2.0, 3.0)", (memory,))
        sql = "INSERT OR REPLACE INTO archivals (memory_id, reason, archived_at) VALUES (?, 'expired', 4.0)"
        txn.connection.execute(sql, (memory,))
        assert rows(txn.connection, "SELECT * FROM archivals") == [(memory, "expired", 4.0, None, None)]
