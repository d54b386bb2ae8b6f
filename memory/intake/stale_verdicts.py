"""Withdraws verdicts of the prediction-error gate that no longer hold after a document changed (features M6, M7)."""

from __future__ import annotations

from collections.abc import Sequence

from speckit_memory.memory.intake.contradictions import contradiction
from speckit_memory.memory.intake.prediction_error import HIGH, MAKER, MOST_PASSAGES, similarity_of
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.reading import comparing, reader
from speckit_memory.memory.store.records import Edge
from speckit_memory.memory.store.tables.graph import edges


def reconsider(database: Database, keys: Sequence[str], now: float) -> dict[str, list[str]]:
    """Withdraw the gate's edges at changed documents whose reason is gone; return messages by key."""
    connection = database.reader()
    ids = {reader.get_memory(connection, key).id: key for key in keys} if edges.edges_by(connection, MAKER) else {}
    told: dict[str, list[str]] = {}
    concerned = _around(connection, list(ids))
    if not any(reason_gone(connection, edge) for edge in concerned):
        return told
    with database.write() as txn:
        for edge, why in withdraw(txn, list(ids), now):
            source, target = (_key(txn.connection, end) for end in (edge.source_id, edge.target_id))
            line = f"{target} is no longer marked as superseded by {source}: {why}"
            told.setdefault(ids.get(edge.source_id) or ids[edge.target_id], []).append(line)
    return told


def withdraw(txn: Transaction, memories: Sequence[int], now: float) -> list[tuple[Edge, str]]:
    """Remove the gate's edges at these memories whose reason is gone; return each edge with why."""
    withdrawn = []
    for edge in _around(txn.connection, memories):
        if why := reason_gone(txn.connection, edge):
            edges.remove_edge(txn, edge, by=MAKER, why=why, now=now)
            withdrawn.append((edge, why))
    return withdrawn


def reason_gone(connection: Connection, edge: Edge) -> str:
    """Return why an edge of the gate no longer holds, "" if it does. Without vectors only the words are compared."""
    one, other = (comparing.vectors_of(connection, end, MOST_PASSAGES) for end in (edge.source_id, edge.target_id))
    if len(one) and len(other) and one.shape[1] == other.shape[1]:
        similarity = similarity_of(one, other)
        if similarity < HIGH:
            return f"their similarity is {similarity:.2f}, below {HIGH}"
    found = contradiction(reader.body(connection, edge.source_id), reader.body(connection, edge.target_id))
    return "" if found is not None and found.counts else "they no longer contradict each other"


def _around(connection: Connection, memories: Sequence[int]) -> list[Edge]:
    found = {edge.id: edge for memory in memories for edge in edges.edges_by(connection, MAKER, memory)}
    return [found[number] for number in sorted(found)]


def _key(connection: Connection, memory: int) -> str:
    return str(value(connection, "SELECT key FROM memories WHERE id = ?", (memory,)))
