"""Finds the memories that other documents refer to, by a declared link or by their key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.records import MENTION

_WRITTEN = "SELECT DISTINCT memory_id FROM changes WHERE seq > ? AND kind = 'put' ORDER BY memory_id LIMIT ?"
_LINKED = (
    "SELECT DISTINCT target_id FROM declared_links WHERE memory_id IN (SELECT value FROM carray(?)) "
    "AND target_id IN (SELECT value FROM carray(?)) AND target_id <> memory_id "
    f"AND evidence NOT GLOB '{MENTION}*' ORDER BY target_id"
)
_KEYS = "SELECT id, key FROM memories WHERE id IN (SELECT value FROM carray(?)) ORDER BY id"
_BODY = "SELECT memory_id, body FROM bodies WHERE memory_id IN (SELECT value FROM carray(?))"


def written_since(connection: Connection, change: int, most: int) -> list[int]:
    """Ids of up to `most` memories written after the change with this number, ascending."""
    return [memory for (memory,) in rows(connection, _WRITTEN, (change, most))]


def linked_by(connection: Connection, documents: Sequence[int], memories: Iterable[int]) -> list[int]:
    """The memories among `memories` to which one of the documents declares a link; mentions in text do not count."""
    return [memory for (memory,) in rows(connection, _LINKED, (integers(documents), integers(sorted(memories))))]


def cited_by(connection: Connection, documents: Sequence[int], memories: Iterable[int]) -> list[int]:
    """The memories among `memories` whose whole key occurs in the text of one of the documents except their own."""
    named = rows(connection, _KEYS, (integers(sorted(memories)),))
    bodies = rows(connection, _BODY, (integers(documents),))
    return [
        memory
        for memory, key in named
        if any(owner != memory and key in body and _stands_alone(key, body) for owner, body in bodies)
    ]


def _stands_alone(key: str, body: str) -> bool:
    """Whether the key occurs by itself and not as part of a longer path."""
    # "./a.md", "../a.md" and "/a.md" name a.md; "x/a.md" and "a.md.bak" do not. A full stop may follow.
    return re.search(rf"(?<![\w/.-])(?:\.{{0,2}}/)*{re.escape(key)}(?![\w/-]|\.\w)", body) is not None
