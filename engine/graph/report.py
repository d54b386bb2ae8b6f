"""Reports on the causal graph and removes the edges of an automatic process (features M9, M10, S5)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.graph import entity_links, ranking
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.reading.density import Density, density, describe_density
from speckit_memory.memory.store.tables.graph import edges, entities, ranks
from speckit_memory.memory.store.tables.graph.edges import DELIBERATE

REMOVAL = "graph remove"
"""The maker of removals in the link history; `links undo --by` reverts them."""

Found = TypeVar("Found", entity_links.Scanned, entity_links.Differences, ranking.GraphRanking | None)


@dataclass(frozen=True, slots=True)
class GraphReport:
    """Statistics of the graph.

    Its density; edges per maker; memories with a rank, communities, and memories waiting for the background ranking;
    memories searched for names, and names found.
    """

    density: Density
    makers: dict[str, int]
    ranked: int
    communities: int
    waiting: int
    searched: int
    names: int


@dataclass(frozen=True, slots=True)
class LinkedNames:
    """The memories searched for names, and the links added and removed.

    If `room` is 0, the graph is dense without such links, and none are made.
    """

    searched: int
    added: int
    removed: int
    room: int


def report(connection: Connection) -> GraphReport:
    """The present statistics."""
    return GraphReport(
        density(connection),
        edges.makers(connection),
        ranks.count(connection),
        ranks.communities(connection),
        ranking.stale(connection, time.time()),
        entities.count_scanned(connection),
        entities.names(connection),
    )


def graph_told(connection: Connection) -> str:
    """The graph in one line."""
    found = report(connection)
    parts = [describe_density(found.density)]
    if found.ranked:
        parts.append(f"{found.ranked} memories ranked in {found.communities} communities")
    if found.waiting:
        parts.append(f"{found.waiting} wait for `speckit-memory maintain`")
    return "; ".join(parts)


def remove_edges(database: Database, made_by: str, *, dry_run: bool = False) -> int:
    """Deletes every edge of an automatic process, or counts them in a dry run. Returns their number.

    The link history records each of them. Raises E030 for a name without edges, and for edges from people and
    documents, which are changed at their source.
    """
    known = edges.makers(database.reader())
    automatic = [maker for maker in known if maker not in DELIBERATE]
    if made_by in DELIBERATE:
        hint = "Remove the links of documents in the documents, and those made by hand one by one."
        raise SpeckitError("E030", f"'{made_by}' is not an automatic process: its edges stay", hint=hint)
    if made_by not in automatic:
        accepted = nearest(made_by, automatic) if automatic else "no edge was made by an automatic process"
        raise SpeckitError("E030", f"no edge was made by '{made_by}'; {accepted}")
    if dry_run:
        return known[made_by]
    with database.write() as txn:
        found = edges.edges_by(txn.connection, made_by)
        for edge in found:
            edges.remove_edge(txn, edge, by=REMOVAL, why=f"all that '{made_by}' made", now=time.time())
    return len(found)


def link_names(database: Database) -> LinkedNames:
    """Searches new and changed memories for names and links those that share names, in small transactions.

    Background work does the same if `entities: link` is configured. Raises SpeckitError if the store cannot be written.
    """
    before = _linked(database.reader())
    searched = 0
    while more := _step(database, entity_links.scan_entities, entity_links.keep_names):
        searched += more
    while _step(database, entity_links.differences, entity_links.write):
        pass
    after = _linked(database.reader())
    return LinkedNames(searched, len(after - before), len(before - after), entity_links.room(database.reader()))


def rank_memories(database: Database) -> int:
    """Ranks connected memories, or deletes ranks if the graph is no longer dense, as background work does.

    Returns the number of memories with changed values. Raises SpeckitError if the store cannot be written.
    """
    return _step(database, ranking.compute_ranks, ranking.write)


def _linked(connection: Connection) -> set[tuple[int, int]]:
    return {(edge.source_id, edge.target_id) for edge in edges.edges_by(connection, entity_links.MAKER)}


def _step(
    database: Database, find: Callable[[Connection, float], Found], write: Callable[[Transaction, float, Found], int]
) -> int:
    """Processes one batch; returns the number of items processed."""
    # compute on a snapshot, so that the write lock is held only for storing
    with database.snapshot_read() as connection:
        found = find(connection, time.time())
    if not found:
        return 0
    with database.write() as txn:
        return write(txn, time.time(), found)
