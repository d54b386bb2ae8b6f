"""What the causal graph is like, and taking out of it what an automatic process put there (features M9, M10, S5)."""

from __future__ import annotations

import time
from dataclasses import dataclass

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.graph import ranking
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.reading.density import Density, density, told
from speckit_memory.memory.store.tables import edges, ranks
from speckit_memory.memory.store.tables.edges import DELIBERATE


@dataclass(frozen=True, slots=True)
class GraphReport:
    """How dense the graph is, who made its edges, how many memories have a rank and a community, and how many wait for
    the background work that ranks them."""

    density: Density
    makers: dict[str, int]
    ranked: int
    communities: int
    waiting: int


def report(connection: Connection) -> GraphReport:
    """The graph as it is now."""
    return GraphReport(
        density(connection),
        edges.makers(connection),
        ranks.count(connection),
        ranks.communities(connection),
        ranking.stale(connection, time.time()),
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
            edges.remove_edge(txn, edge, by="manual", why=f"all that '{made_by}' made", now=time.time())
    return len(found)
