"""Texts that were sent to a session, so that none is sent twice (feature A2). Entries count for `LIFE`."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.tables.sessions.working_memory import LIFE

MOST_SENT = 100
"""Entries kept per session, the latest ones."""
Sent = tuple[int, str]
"""A memory id and the digest of one of its texts that was sent to a session."""


def digest(memory: int, text: str) -> str:
    """Identifies a text of a memory that was sent. The same words in another memory are another text: their receiver
    does not know that they occur here too."""
    return blake2b(f"{memory}\n{text}".encode(errors="surrogatepass"), digest_size=16).hexdigest()


def mark_sent(txn: Transaction, session: str, texts: Sequence[tuple[int, str]], now: float) -> None:
    """Record that texts of memories were sent to a session, and delete entries of any session older than `LIFE`.

    Args:
        txn: The write transaction.
        session: Name of the session.
        texts: (memory id, text) of each.
        now: The present time in epoch seconds.
    """
    txn.connection.execute("DELETE FROM session_sent WHERE sent_at <= ?", (now - LIFE,))
    txn.connection.executemany(
        "INSERT INTO session_sent (session, content_hash, memory_id, sent_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET sent_at = excluded.sent_at",
        [(session, digest(memory, text), memory, now) for memory, text in texts],
    )
    txn.connection.execute(
        "DELETE FROM session_sent WHERE session = ?1 AND content_hash IN (SELECT content_hash FROM session_sent "
        "WHERE session = ?1 ORDER BY sent_at DESC, memory_id LIMIT -1 OFFSET ?2)",
        (session, MOST_SENT),
    )


def forget_sent(txn: Transaction, session: str) -> None:
    """Forget what was sent to a session: the reader's context no longer contains it."""
    txn.connection.execute("DELETE FROM session_sent WHERE session = ?", (session,))


def texts_sent(connection: Connection, session: str, now: float) -> Sequence[Sent]:
    """The texts sent to a session within `LIFE` before `now` (epoch seconds)."""
    return rows(
        connection,
        "SELECT memory_id, content_hash FROM session_sent WHERE session = ?1 AND sent_at > ?2 AND sent_at <= ?3",
        (session, now - LIFE, now),
    )
