"""What is not in the evaluation database: queries that were dropped, and records that were given up."""

from __future__ import annotations

import time

import apsw

from speckit_memory.memory.store.evaluation.records import Dropped
from speckit_memory.memory.store.file.guarding.queries import rows, value

STEP = 500
"""So many queries are given up in one transaction, so that no writer waits long."""
_FREED = 256
"""Pages that go back to the file system in one transaction."""
_HOUR = 3600

_COUNT_PAIRS = """
INSERT INTO pruned SELECT c.pipeline, v.pipeline, v.mode, count(*), max(q.at)
FROM queries q JOIN answers v ON v.query = q.number JOIN pairs p ON p.answer = v.number
JOIN answers c ON c.query = q.number AND c.mode = 'served'
WHERE q.number IN (SELECT number FROM queries WHERE at < ?1 ORDER BY at, number LIMIT ?2) GROUP BY 1, 2, 3
ON CONFLICT DO UPDATE SET count = count + excluded.count, last = max(last, excluded.last)
"""
_COUNT_QUERIES = """
INSERT INTO pruned SELECT coalesce(max(c.pipeline), ''), '', '', count(*), max(q.at)
FROM queries q LEFT JOIN answers c ON c.query = q.number AND c.mode = 'served'
WHERE q.number IN (SELECT number FROM queries WHERE at < ?1 ORDER BY at, number LIMIT ?2) GROUP BY c.pipeline
ON CONFLICT DO UPDATE SET count = count + excluded.count, last = max(last, excluded.last)
"""
_GIVE_UP = "DELETE FROM queries WHERE number IN (SELECT number FROM queries WHERE at < ? ORDER BY at, number LIMIT ?)"
_COUNT_REPLAYS = """
INSERT INTO pruned SELECT r.control, r.variant, 'shadow', count(*), max(q.at) FROM replays r JOIN queries q
ON q.number = r.query WHERE r.basis <> 'gone'
AND q.number IN (SELECT number FROM queries WHERE at < ?1 ORDER BY at, number LIMIT ?2) GROUP BY 1, 2
ON CONFLICT DO UPDATE SET count = count + excluded.count, last = max(last, excluded.last)
"""
_FORGET = """
UPDATE queries SET question = NULL, read_point = NULL
WHERE number IN (SELECT number FROM queries WHERE question IS NOT NULL AND at < ? LIMIT ?)
"""
_KEPT = """
SELECT (SELECT total((octet_length(document) / ?1 + 1) * ?1) FROM evaluations)
    + 1.5 * (SELECT total(octet_length(pipeline) + octet_length(metric) + 32) FROM metric_snapshots)
    + 1.5 * (SELECT total(octet_length(query) + octet_length(judge) + 40) FROM ground_truth)
    + 1.5 * (SELECT total(octet_length(list) + octet_length(pair) + octet_length(judge) + 24) FROM labels)
"""
"""Documents lie in pages of their own, rows in pages that are two thirds full."""
_BESIDE = ("DELETE FROM scorings WHERE at < ?", "DELETE FROM uses WHERE at < ?")


def put_dropped(connection: apsw.Connection, dropped: Dropped, at: float | None = None) -> None:
    """Adds to the count of this hour."""
    hour = int((time.time() if at is None else at) // _HOUR)
    connection.execute(
        "INSERT INTO dropped VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
        (dropped.control, dropped.variant, dropped.mode, dropped.why, hour, dropped.count),
    )


def prune_before(connection: apsw.Connection, moment: float, most: int = STEP) -> int:
    """Gives up the oldest queries before a moment, with all that hangs on them, and counts them; returns how many."""
    for sql in (_COUNT_PAIRS, _COUNT_REPLAYS, _COUNT_QUERIES):
        connection.execute(sql, (moment, most))
    connection.execute(_GIVE_UP, (moment, most))
    given_up = connection.changes()
    if given_up < most:  # nothing of that age is left: what came beside it may go too
        for sql in _BESIDE:
            connection.execute(sql, (moment,))
        connection.execute("DELETE FROM dropped WHERE hour < ?", (int(moment // _HOUR),))
    return given_up


def forget_texts(connection: apsw.Connection, moment: float, most: int = STEP) -> int:
    """Forgets the words of queries before a moment, and nothing else of them; returns of how many."""
    connection.execute(_FORGET, (moment, most))
    return connection.changes()


def moment_of(connection: apsw.Connection, most: int = STEP) -> float | None:
    """A moment before which the `most` oldest queries were asked; None when there are no queries."""
    found: float | None = value(
        connection, "SELECT max(at) FROM (SELECT at FROM queries ORDER BY at, number LIMIT ?)", (most,)
    )
    return None if found is None else found + 1e-6


def bytes_to_give_up(connection: apsw.Connection) -> int:
    """What queries and their answers take, without pages that are free and without what is kept for good."""
    pages, free, size = (connection.pragma(name) for name in ("page_count", "freelist_count", "page_size"))
    return int((pages - free) * size) - kept_bytes(connection)


def kept_bytes(connection: apsw.Connection) -> int:
    """About what is taken by stored comparisons and judgements, which are never given up."""
    return int(value(connection, _KEPT, (connection.pragma("page_size"),)))


def give_back(connection: apsw.Connection) -> None:
    """Gives free pages back to the file system, a bounded number of them."""
    connection.execute(f"PRAGMA incremental_vacuum({_FREED})").fetchall()


def counts(connection: apsw.Connection) -> dict[str, int]:
    """How many records of each kind there are; `pruned` counts queries that were given up, `dropped` those never
    recorded."""
    tables = ("queries", "pairs", "replays", "scorings", "uses", "ground_truth", "evaluations", "flag_changes")
    found = {table: int(value(connection, f"SELECT count(*) FROM {table}")) for table in (*tables, "retreats")}
    found["pairs"] += found.pop("replays")
    for table, only in (("pruned", "WHERE variant = ''"), ("dropped", "")):
        found[table] = int(rows(connection, f"SELECT coalesce(sum(count), 0) FROM {table} {only}")[0][0])
    return found
