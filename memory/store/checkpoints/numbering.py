"""Ids for memories and passages that come from another file (feature M14)."""

from __future__ import annotations

import json
from collections.abc import Collection

import apsw

from speckit_memory.memory.store.file.guarding.queries import rows, value


def numbered(
    source: apsw.Connection,
    connection: apsw.Connection,
    memories: dict[int, int],
    keep_ids: bool,
    spared: Collection[int] = (),
) -> dict[int, int]:
    """Gives those memories ids that have none yet, and all passages theirs; returns these, by those of the source. A
    number that is free stays what it was in the source, if ids are to be kept. Those that are `spared` do not come."""
    taken = {row for (row,) in rows(connection, "SELECT id FROM memories UNION SELECT id FROM chunks")}
    chunks: dict[int, int] = {}
    for row, numbers in rows(
        source,
        "SELECT m.id, (SELECT json_group_array(id ORDER BY ordinal) FROM chunks WHERE memory_id = m.id) "
        "FROM memories m ORDER BY m.id",
    ):
        if row in spared:
            continue
        own: list[int] = json.loads(numbers)
        if row not in memories:
            memories[row] = row if keep_ids and row not in taken else draw(connection, 1)[0]
        here = memories[row]
        if own == [row]:
            chunks[row] = here
        elif here == row and keep_ids and taken.isdisjoint(own):
            chunks.update(zip(own, own, strict=True))
        else:
            chunks.update(zip(own, draw(connection, len(own)), strict=True))
        taken |= {here, *(chunks[each] for each in own)}
    return chunks


def draw(connection: apsw.Connection, count: int) -> range:
    """New ids, which nothing has ever had. Inside a transaction."""
    following: int = value(connection, "UPDATE id_sequence SET next = next + ? RETURNING next", (count,))
    return range(following - count, following)
