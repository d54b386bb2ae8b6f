"""Working memory of a session: at most seven memories, whose attention decays with each event (feature M4).

An event is an answer served to the session, a document saved by it, or a memory read by name. Attention is stored as of
the event that last touched the memory, and its present value is computed from the number of events since. Decay thus
needs no writes: it cannot be applied twice, and a killed process leaves no partial state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value

LIFE = 30 * 60.0
"""Seconds without focus or mention after which a memory leaves working memory."""
CAPACITY = 7
"""Maximum number of memories in a session's working memory."""
FADING = 0.85
"""Factor by which one event multiplies attention."""
FLOOR = 0.05
"""Lowest value reported for a memory that is not forgotten."""
FORGOTTEN = 0.01
"""Attention below which a memory leaves working memory."""
MENTION = 0.05
"""Attention that a mention adds."""


class AttendedMemory(NamedTuple):
    """A memory in a session's working memory: its attention in (0, 1], the time of its last focus, and its source."""

    memory: int
    attention: float
    last_focused: float
    source: str
    source_call: str


class _Held(NamedTuple):
    level: float
    added_at: float
    last_focused: float
    focus_count: int
    mention_count: int
    source: str
    source_call: str


def fade(attention: float, events: int) -> float:
    """Attention after this number of events, in [0, 1]: at least `FLOOR`, and 0 once it has decayed below `FORGOTTEN`.

    The floor applies to the result only: if each event decayed from the floor again, nothing would ever be forgotten.
    """
    left = _remaining(attention, events)
    return max(FLOOR, left) if left else 0.0


def note_event(
    txn: Transaction,
    session: str,
    focused: Sequence[int],
    now: float,
    *,
    mentioned: Sequence[int] = (),
    source: str,
    source_call: str = "",
) -> None:
    """Records an event of a session and updates its working memory, keeping the `CAPACITY` highest by attention.

    Args:
        txn: The transaction.
        session: The session.
        focused: Ids of the focused memories, most important first; the one at position i gets at least the attention
            `FADING ** i`. Unknown ids are ignored.
        now: The time, in epoch seconds.
        mentioned: Ids of mentioned memories, which gain `MENTION` if they are in working memory.
        source: The origin of the focus.
        source_call: The call it came from.
    """
    connection = txn.connection
    event = value(
        connection,
        "INSERT INTO session_state (session, began_at, last_event, events) VALUES (?1, ?2, ?2, 1) "
        "ON CONFLICT DO UPDATE SET last_event = excluded.last_event, events = session_state.events + 1 "
        "RETURNING events",
        (session, now),
    )
    # before: rows decayed to this event; only rows that differ from it are written below
    before, held = _load(connection, session, event, now), {}
    held.update(before)
    for memory in mentioned:
        if (old := held.get(memory)) and memory not in focused:
            held[memory] = old._replace(
                level=min(1.0, old.level + MENTION), last_focused=now, mention_count=old.mention_count + 1
            )
    stored = {
        memory
        for (memory,) in rows(
            connection, "SELECT id FROM memories WHERE id IN (SELECT value FROM carray(?))", (integers(focused),)
        )
    }
    for rank, memory in enumerate(memory for memory in dict.fromkeys(focused) if memory in stored):
        level, known = FADING**rank, held.get(memory)
        if known is None:
            held[memory] = _Held(level, now, now, 1, 0, source, source_call)
        else:
            level = max(level, min(1.0, known.level + MENTION))
            held[memory] = _Held(
                level, known.added_at, now, known.focus_count + 1, known.mention_count, source, source_call
            )
    # highest attention first, then latest focus, then id, so that the choice is deterministic
    kept = sorted(held, key=lambda memory: (-held[memory].level, -held[memory].last_focused, memory))[:CAPACITY]
    connection.execute(
        "DELETE FROM working_memory WHERE session = ?1 AND memory_id NOT IN (SELECT value FROM carray(?2))",
        (session, integers(kept)),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO working_memory (session, memory_id, attention, added_at, last_focused, focus_count, "
        "event_counter, mention_count, source, source_call) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                session,
                memory,
                one.level,
                one.added_at,
                one.last_focused,
                one.focus_count,
                event,
                one.mention_count,
                one.source,
                one.source_call,
            )
            for memory in kept
            if (one := held[memory]) != before.get(memory)
        ],
    )


def working_memory_of(connection: Connection, session: str, since: float, until: float) -> list[AttendedMemory]:
    """The working memory of a session.

    Args:
        connection: A connection to the store.
        session: The session.
        since: Only memories focused after this time, in epoch seconds.
        until: Only memories focused up to this time, in epoch seconds.

    Returns:
        The memories, by attention descending, then the latest focus.
    """
    # attention as of `event_counter`; the difference of the counters is the number of events since
    found = rows(
        connection,
        "SELECT w.memory_id, w.attention, coalesce(s.events, w.event_counter) - w.event_counter, w.last_focused, "
        "w.source, w.source_call FROM working_memory w LEFT JOIN session_state s USING (session) "
        "WHERE w.session = ?1 AND w.last_focused > ?2 AND w.last_focused <= ?3",
        (session, since, until),
    )
    left = [AttendedMemory(memory, fade(level, events), *rest) for memory, level, events, *rest in found]
    return sorted(
        (one for one in left if one.attention), key=lambda one: (-one.attention, -one.last_focused, one.memory)
    )


def _load(connection: Connection, session: str, event: int, now: float) -> dict[int, _Held]:
    """The session's working memory at this event. Rows with a time later than `now` come from another clock and are
    ignored."""
    found = rows(
        connection,
        "SELECT memory_id, attention, event_counter, added_at, last_focused, focus_count, mention_count, source, "
        "source_call FROM working_memory WHERE session = ?1 AND last_focused > ?2 AND last_focused <= ?3",
        (session, now - LIFE, now),
    )
    held = {memory: _Held(_remaining(level, event - noted), *rest) for memory, level, noted, *rest in found}
    return {memory: one for memory, one in held.items() if one.level}


def _remaining(attention: float, events: int) -> float:
    # exponential decay: a(n) = a(0) · FADING^n, 0 below FORGOTTEN
    left = attention * FADING ** max(0, events)
    return left if left >= FORGOTTEN else 0.0
