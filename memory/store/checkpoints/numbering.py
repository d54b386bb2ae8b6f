"""Assigns ids to memories and passages from another file (feature M14)."""

from __future__ import annotations

import json
from collections.abc import Collection

import apsw

from speckit_memory.memory.store.file.guarding.queries import rows, value


def assign_ids(
    source: apsw.Connection,
    connection: apsw.Connection,
    memories: dict[int, int],
    keep_ids: bool,
    spared: Collection[int] = (),
) -> dict[int, int]:
    """Assigns ids to the memories that have none yet, and to all passages.

    Args:
        source: The other file.
        connection: A connection to this store, inside a transaction.
        memories: Ids here by id in the source; missing ones are added.
        keep_ids: Whether ids that are free here stay the same.
        spared: Ids in the source of memories that are skipped.

    Returns:
        Ids of passages here by id in the source.
    """
    # all ids in use here, of memories and passages alike: they share one sequence
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
        if own == [row]:  # a single passage has its memory's id
            chunks[row] = here
        # all passages of a memory keep their ids or none does, so that ids stay in document order
        elif here == row and keep_ids and taken.isdisjoint(own):
            chunks.update(zip(own, own, strict=True))
        else:
            chunks.update(zip(own, draw(connection, len(own)), strict=True))
        taken |= {here, *(chunks[each] for each in own)}
    return chunks


def draw(connection: apsw.Connection, count: int) -> range:
    """Draws new ids, which were never used before. Inside a transaction."""
    following: int = value(connection, "UPDATE id_sequence SET next = next + ? RETURNING next", (count,))
    return range(following - count, following)
