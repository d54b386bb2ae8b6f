"""What the causal graph is like, and taking out of it what an automatic process put there (features M9, M10, S5)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.graph import entity_links, entity_scan, ranking
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.reading.density import Density, density, told
from speckit_memory.memory.store.tables.graph import edges, entities, ranks
from speckit_memory.memory.store.tables.graph.edges import DELIBERATE

REMOVAL = "graph remove"
"""Who removed edges in the history of links; `links undo --by` takes all of it back."""

Found = TypeVar("Found", entity_scan.Found, entity_links.Differences, ranking.Ranking | None)


@dataclass(frozen=True, slots=True)
class GraphReport:
    """How dense the graph is, who made its edges, how many memories have a rank and a community, and how many wait for
    the background work that ranks them; in how many memories names were looked for, and how many they have."""

    density: Density
    makers: dict[str, int]
    ranked: int
    communities: int
    waiting: int
    searched: int
    names: int


@dataclass(frozen=True, slots=True)
class LinkedNames:
    """In how many memories names were looked for, and how many links came and went for them.

    Where `room` is 0, the graph is dense without such links, and there are none.
    """

    searched: int
    added: int
    removed: int
    room: int


def report(connection: Connection) -> GraphReport:
    """The graph as it is now."""
    return GraphReport(
        density(connection),
        edges.makers(connection),
        ranks.count(connection),
        ranks.communities(connection),
        ranking.stale(connection, time.time()),
        entities.scanned(connection),
        entities.names(connection),
    )


def graph_told(connection: Connection) -> str:
    """The graph for a reader, in a line."""
    found = report(connection)
    parts = [told(found.density)]
    if found.ranked:
        parts.append(f"{found.ranked} memories ranked in {found.communities} communities")
    if found.waiting:
        parts.append(f"{found.waiting} wait for `speckit-memory maintain`")
    return "; ".join(parts)


def remove_edges(database: Database, made_by: str, *, dry_run: bool = False) -> int:
    """Deletes every edge that an automatic process made, or counts them in a dry run; returns how many. The history
    of links has each of them.

    Raises E030 for a name that made none, and for what people and documents say: that is changed where it was said.
    """
    known = edges.makers(database.reader())
    automatic = [maker for maker in known if maker not in DELIBERATE]
    if made_by in DELIBERATE:
        hint = "Edges of documents go with the link in the document; those made by hand one by one."
        raise SpeckitError("E030", f"'{made_by}' is no automatic process: its edges stay", hint=hint)
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
    """Looks for names in what is new or changed, and links memories that name the same, as the background work does
    where `entities: link` is configured; in small transactions. Raises SpeckitError when the store cannot be written.
    """
    before = _linked(database.reader())
    searched = 0
    while more := _step(database, entity_scan.found, entity_scan.keep):
        searched += more
    while _step(database, entity_links.differences, entity_links.write):
        pass
    after = _linked(database.reader())
    return LinkedNames(searched, len(after - before), len(before - after), entity_links.room(database.reader()))


def rank_memories(database: Database) -> int:
    """Ranks what the edges connect, or takes ranks back where the graph is no longer dense, as the background work
    does; returns for how many memories something changed. Raises SpeckitError when the store cannot be written.
    """
    return _step(database, ranking.computed, ranking.write)


def _linked(connection: Connection) -> set[tuple[int, int]]:
    return {(edge.source_id, edge.target_id) for edge in edges.edges_by(connection, entity_links.MAKER)}


def _step(
    database: Database, find: Callable[[Connection, float], Found], write: Callable[[Transaction, float, Found], int]
) -> int:
    """Does a batch of what is found; returns how much was done."""
    with database.snapshot_read() as connection:
        found = find(connection, time.time())
    if not found:
        return 0
    with database.write() as txn:
        return write(txn, time.time(), found)
