"""Lists memories that have not been used for a long time, for review by people (feature M11)."""

from __future__ import annotations

from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows, texts
from speckit_memory.memory.store.records import EARLIEST, LATEST, UNKNOWN_TIME, Tier

STALE_SECONDS = 90 * 86_400.0
"""A memory not served, created or changed within this time is stale."""
EXEMPT = (Tier.CONSTITUTIONAL, Tier.CRITICAL, Tier.DEPRECATED)
"""Tiers that are never stale: the first two hold regardless of use, the last is known to be invalid."""

_STALE = """
SELECT key, title, since FROM (
    SELECT key, title, max(created_at, updated_at, coalesce(last_accessed, created_at)) AS since FROM memories
    WHERE tier NOT IN (SELECT value FROM carray(:exempt)) AND (expires_at IS NULL OR expires_at > :now)
) WHERE since <> :unknown AND since BETWEEN :earliest AND min(:now - :long, :latest) ORDER BY since, key
"""


class Stale(NamedTuple):
    """A memory, and when it was last served, created or changed (epoch seconds)."""

    key: str
    title: str
    since: float


def stale(connection: Connection, now: float) -> list[Stale]:
    """The stale memories at `now` (epoch seconds), longest unused first; without those of unknown age."""
    facts = {
        "exempt": texts(EXEMPT),
        "now": now,
        "earliest": EARLIEST,
        "latest": LATEST,
        "long": STALE_SECONDS,
        "unknown": UNKNOWN_TIME,
    }
    return [Stale(*row) for row in rows(connection, _STALE, facts)]
