"""What a session attends to: at most seven memories, whose attention fades by event (feature M4).

An event is an answer that was served to the session, a document that it saved, or a memory that it read by its name.
Attention is stored as of the event that last touched a memory, and what is left of it follows from how many events have
passed since: nothing is rewritten to make it fade, so that it cannot fade twice, and a killed process leaves it as it
was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value

LIFE = 30 * 60.0
"""Seconds without being attended to after which a memory counts no more."""
CAPACITY = 7
"""Memories that a session attends to at most."""
FADING = 0.85
"""What one event leaves of attention."""
FLOOR = 0.05
"""What is faint counts as this much, as long as it is there at all."""
FORGOTTEN = 0.01
"""Attention below which a memory is out of mind."""
MENTION = 0.05
"""What a mention adds."""


class Attended(NamedTuple):
    """A memory that a session attends to: how much, in (0, 1], since when, and what brought it."""

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


def faded(attention: float, events: int) -> float:
    """What so many events leave of attention, in [0, 1]: it is held at `FLOOR` until it falls below `FORGOTTEN`.

    The floor is no step of the fading: attention that began anew at it with every event would never be forgotten.
    """
    left = _left(attention, events)
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
    """Notes an event of a session at `now` (epoch seconds), after which it attends to the `focused` memories, the first
    of them most of all: each further one enters as if another event had passed.

    What was `mentioned` gains a little if the session attends to it. `source` and `source_call` tell where the focus
    came from. Of more than `CAPACITY` memories the least attended ones go; ids that are not stored are passed over.
    """
    connection = txn.connection
    event = value(
        connection,
        "INSERT INTO session_state (session, began_at, last_event, events) VALUES (?1, ?2, ?2, 1) "
        "ON CONFLICT DO UPDATE SET last_event = excluded.last_event, events = events + 1 RETURNING events",
        (session, now),
    )
    before, held = _held(connection, session, event, now), {}
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


def attended(connection: apsw.Connection, session: str, since: float, until: float) -> list[Attended]:
    """What a session attended to last between two times (epoch seconds, the first one excluded), most of all first."""
    found = rows(
        connection,
        "SELECT w.memory_id, w.attention, coalesce(s.events, w.event_counter) - w.event_counter, w.last_focused, "
        "w.source, w.source_call FROM working_memory w LEFT JOIN session_state s USING (session) "
        "WHERE w.session = ?1 AND w.last_focused > ?2 AND w.last_focused <= ?3",
        (session, since, until),
    )
    left = [Attended(memory, faded(level, events), *rest) for memory, level, events, *rest in found]
    return sorted(
        (one for one in left if one.attention), key=lambda one: (-one.attention, -one.last_focused, one.memory)
    )


def _held(connection: apsw.Connection, session: str, event: int, now: float) -> dict[int, _Held]:
    """What the session still attends to at this event. What bears a later time than now was noted by another clock."""
    found = rows(
        connection,
        "SELECT memory_id, attention, event_counter, added_at, last_focused, focus_count, mention_count, source, "
        "source_call FROM working_memory WHERE session = ?1 AND last_focused > ?2 AND last_focused <= ?3",
        (session, now - LIFE, now),
    )
    held = {memory: _Held(_left(level, event - noted), *rest) for memory, level, noted, *rest in found}
    return {memory: one for memory, one in held.items() if one.level}


def _left(attention: float, events: int) -> float:
    left = attention * FADING ** max(0, events)
    return left if left >= FORGOTTEN else 0.0
