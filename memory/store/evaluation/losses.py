"""Losses of the evaluation database: queries that were dropped, and pruning of old records."""

from __future__ import annotations

import time

from speckit_memory.memory.store.evaluation.records import DroppedQueries
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows, value

STEP = 500
"""Maximum number of queries deleted in one transaction, so that other writers do not wait long."""
_FREED = 256
"""Maximum number of pages returned to the file system in one transaction."""
_HOUR = 3600

# The three counts and the deletion select the same rows: the oldest by (at, number), from the index queries_by_time.
_COUNT_PAIRS = """
INSERT INTO pruned SELECT c.pipeline, v.pipeline, v.mode, count(*), max(q.at)
FROM queries q JOIN answers v ON v.query = q.number JOIN pairs p ON p.answer = v.number
JOIN answers c ON c.query = q.number AND c.mode = 'served'
WHERE q.number IN (SELECT number FROM queries WHERE at < ?1 ORDER BY at, number LIMIT ?2) GROUP BY 1, 2, 3
ON CONFLICT DO UPDATE SET count = pruned.count + excluded.count, last = max(pruned.last, excluded.last)
"""
_COUNT_QUERIES = """
INSERT INTO pruned SELECT coalesce(c.pipeline, ''), '', '', count(*), max(q.at)
FROM queries q LEFT JOIN answers c ON c.query = q.number AND c.mode = 'served'
WHERE q.number IN (SELECT number FROM queries WHERE at < ?1 ORDER BY at, number LIMIT ?2) GROUP BY 1
ON CONFLICT DO UPDATE SET count = pruned.count + excluded.count, last = max(pruned.last, excluded.last)
"""
_GIVE_UP = "DELETE FROM queries WHERE number IN (SELECT number FROM queries WHERE at < ? ORDER BY at, number LIMIT ?)"
_COUNT_REPLAYS = """
INSERT INTO pruned SELECT r.control, r.variant, 'shadow', count(*), max(q.at) FROM replays r JOIN queries q
ON q.number = r.query WHERE r.basis <> 'gone'
AND q.number IN (SELECT number FROM queries WHERE at < ?1 ORDER BY at, number LIMIT ?2) GROUP BY 1, 2
ON CONFLICT DO UPDATE SET count = pruned.count + excluded.count, last = max(pruned.last, excluded.last)
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
"""Approximate bytes: documents occupy whole pages (?1 is the page size), other rows fill two thirds of their pages."""
_BESIDE = ("DELETE FROM scorings WHERE at < ?", "DELETE FROM uses WHERE at < ?")


def put_dropped(connection: Connection, dropped: DroppedQueries) -> None:
    """Adds dropped queries to the count of the present hour."""
    hour = int(time.time() // _HOUR)
    connection.execute(
        "INSERT INTO dropped VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET count = dropped.count + excluded.count",
        (dropped.control, dropped.variant, dropped.mode, dropped.why, hour, dropped.count),
    )


def prune_before(connection: Connection, moment: float) -> int:
    """Deletes up to `STEP` of the oldest queries before a time with all dependent rows, adding them to the counts of
    pruned queries; returns their number."""
    # Count first: all three select the very rows that _GIVE_UP deletes next.
    for sql in (_COUNT_PAIRS, _COUNT_REPLAYS, _COUNT_QUERIES):
        connection.execute(sql, (moment, STEP))
    connection.execute(_GIVE_UP, (moment, STEP))
    given_up = connection.changes()
    if given_up < STEP:  # no queries of that age are left: independent records may be deleted too
        for sql in _BESIDE:
            connection.execute(sql, (moment,))
        connection.execute("DELETE FROM dropped WHERE hour < ?", (int(moment // _HOUR),))
    return given_up


def forget_texts(connection: Connection, moment: float) -> int:
    """Deletes only the texts of up to `STEP` queries before a time; returns their number."""
    connection.execute(_FORGET, (moment, STEP))
    return connection.changes()


def moment_of(connection: Connection) -> float | None:
    """A time just after that of the `STEP` oldest queries; None when there are no queries."""
    found: float | None = value(
        connection, "SELECT max(at) FROM (SELECT at FROM queries ORDER BY at, number LIMIT ?)", (STEP,)
    )
    # pruning takes what is strictly before its time: step over the last of these queries
    return None if found is None else found + 1e-6


def used_bytes(connection: Connection) -> int:
    """Size in bytes of all records in a file, without free pages."""
    pages, free, size = (connection.pragma(name) for name in ("page_count", "freelist_count", "page_size"))
    return int((pages - free) * size)


def kept_bytes(connection: Connection) -> int:
    """Approximate size in bytes of stored comparisons and judgements, which are never deleted."""
    return int(value(connection, _KEPT, (connection.pragma("page_size"),)))


def give_back(connection: Connection) -> None:
    """Returns up to `_FREED` free pages to the file system."""
    connection.execute(f"PRAGMA incremental_vacuum({_FREED})").fetchall()


def counts(connection: Connection) -> dict[str, int]:
    """Number of records of each kind; `pruned` counts deleted queries, `dropped` those never recorded."""
    tables = ("queries", "pairs", "replays", "scorings", "uses", "ground_truth", "evaluations", "flag_changes")
    found = {table: int(value(connection, f"SELECT count(*) FROM {table}")) for table in (*tables, "retreats")}
    found["pairs"] += found.pop("replays")
    for table, only in (("pruned", "WHERE variant = ''"), ("dropped", "")):
        found[table] = int(rows(connection, f"SELECT coalesce(sum(count), 0) FROM {table} {only}")[0][0])
    return found
