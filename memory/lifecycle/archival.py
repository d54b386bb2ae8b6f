"""Archives old, unused, doubted memories and expired ones, restores them (features F7 and M5), and deletes memories
whose files have been absent for too long (feature I8)."""

from __future__ import annotations

from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, texts, value
from speckit_memory.memory.store.read_model.facts.columns import TEMPORARY_LIFE
from speckit_memory.memory.store.reading.reader import get_memory
from speckit_memory.memory.store.records import EARLIEST, LATEST, UNKNOWN_TIME, MemoryRecord, Tier
from speckit_memory.memory.store.tables.memories import absences, archivals
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.links import resolve_links

DAY = 86_400.0
OLD_SECONDS = 90 * DAY
"""A memory created, changed or restored within this time is not archived."""
FEW_USES = 2
"""A memory served this often is not archived."""
DOUBTED = 0.4
"""A memory with at least this confidence is not archived. New memories have 0.5,
so one without a negative judgement is never archived."""
PROTECTED = (Tier.CONSTITUTIONAL, Tier.CRITICAL)
"""Tiers that are never archived."""
BATCH = 50
"""Memories per transaction."""

_FROM = "FROM memories m LEFT JOIN archivals a ON a.memory_id = m.id"
# neither archived nor protected nor absent; a row of `archivals` with a time of restoration does not count
_STANDING = (
    "(a.memory_id IS NULL OR a.restored_at IS NOT NULL) AND m.tier NOT IN (SELECT value FROM carray(:protected)) "
    f"AND {absences.present('m.id')}"
)
_UNUSED = (
    f"{_FROM} WHERE {_STANDING} AND m.access_count < :few AND m.confidence < :doubted AND m.created_at <> :unknown "
    "AND m.created_at BETWEEN :earliest AND :latest "
    "AND max(m.created_at, m.updated_at, coalesce(a.restored_at, m.created_at)) < :now - :old"
)
_OVER = (
    "(m.expires_at < :now OR (m.expires_at IS NULL AND m.tier = 'temporary' "
    "AND m.created_at <> :unknown AND m.created_at BETWEEN :earliest AND :now - :life))"
)
_EXPIRED = f"{_FROM} WHERE {_STANDING} AND {_OVER}"
_END = f"SELECT coalesce(m.expires_at, m.created_at + :life) FROM memories m WHERE m.id = :memory AND {_OVER}"


def count_unused(connection: Connection, now: float) -> int:
    """Number of unprotected memories that are old, hardly used and doubted at `now` (epoch seconds)."""
    return _count(connection, _UNUSED, now)


def archive_unused(txn: Transaction, now: float) -> int:
    """Archive up to `BATCH` of them; returns their number."""
    return _archive(txn, _UNUSED, "unused", now)


def count_expired(connection: Connection, now: float) -> int:
    """Number of memories past their expiry date, or seven days old if temporary, that are not archived."""
    return _count(connection, _EXPIRED, now)


def archive_expired(txn: Transaction, now: float) -> int:
    """Archive up to `BATCH` of them; returns their number. Searches have ignored them since they expired."""
    return _archive(txn, _EXPIRED, "expired", now)


def count_absent(connection: Connection, now: float, days: float) -> int:
    """Number of memories that have been absent for more than `days` at `now` (epoch seconds)."""
    return absences.count(connection, now - days * DAY)


def delete_absent(txn: Transaction, now: float, days: float) -> int:
    """Delete up to `BATCH` of these memories for good; returns their number."""
    deleted = writer.delete_memories(txn, absences.oldest(txn.connection, now - days * DAY, BATCH))
    if deleted:
        resolve_links(txn, now)
    return deleted


def unarchive(database: Database, name: int | str, now: float) -> tuple[MemoryRecord, bool]:
    """Make searches find the memory with this id or key again from `now` on; also returns whether it was archived.

    A memory that had expired gets seven more days. Raises E080.
    """
    with database.write() as txn:
        memory = get_memory(txn.connection, name)
        return memory, take_back(txn, memory.id, now)


def take_back(txn: Transaction, memory: int, now: float) -> bool:
    """Make searches find a stored memory again from `now` on. False when it was neither archived nor expired, or when
    its file is absent."""
    if absences.since(txn.connection, memory) is not None:
        return False
    if archivals.reason_of(txn.connection, memory) is None and _ended(txn.connection, memory, now) is not None:
        archivals.archive(txn, [memory], "expired", now)
    return archivals.restore(txn, memory, now, TEMPORARY_LIFE)


def put_away(connection: Connection, memory: int, now: float) -> tuple[archivals.Away, float] | None:
    """Why searches do not find a memory at `now`, and since when (epoch seconds); None when it is not archived.

    An expired memory counts as archived even before the next archival run, which skips protected tiers.
    """
    if (absent := absences.since(connection, memory)) is not None:
        return "absent", absent
    if found := archivals.reason_of(connection, memory):
        return found
    end = _ended(connection, memory, now)
    return None if end is None else ("expired", end)


def _ended(connection: Connection, memory: int, now: float) -> float | None:
    """When a memory expired; None if it has not."""
    end: float | None = value(connection, _END, {**_facts(now), "memory": memory})
    return end


def _count(connection: Connection, condition: str, now: float) -> int:
    number: int = value(connection, f"SELECT count(*) {condition}", _facts(now))
    return number


def _archive(txn: Transaction, condition: str, reason: archivals.Reason, now: float) -> int:
    # all ids are read before the first write, which changes a table that the query joins
    chosen = f"SELECT m.id {condition} ORDER BY m.id LIMIT {BATCH}"
    found = [memory for (memory,) in rows(txn.connection, chosen, _facts(now))]
    archivals.archive(txn, found, reason, now)
    return len(found)


def _facts(now: float) -> dict[str, object]:
    """The values of all conditions; a statement takes those that it names."""
    return {
        "protected": texts(PROTECTED),
        "few": FEW_USES,
        "doubted": DOUBTED,
        "unknown": UNKNOWN_TIME,
        "earliest": EARLIEST,
        "latest": LATEST,
        "now": now,
        "old": OLD_SECONDS,
        "life": TEMPORARY_LIFE,
    }
