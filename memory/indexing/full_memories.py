"""Resolves declared links and reports those beyond the limit of links per memory (feature M7)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from speckit_memory.errors import Problem, Where
from speckit_memory.memory.parsing.limits import few
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.tables.graph.edges import EDGES_PER_NODE
from speckit_memory.memory.store.writing.links import resolve_links


def resolve_and_tell(txn: Transaction, now: float) -> tuple[int, list[Problem]]:
    """Create the edges that documents declare; return how many are new, and the problems of those beyond the limit."""
    left_out: list[tuple[int, int, str]] = []
    new = resolve_links(txn, now, left_out)
    return new, few(_without_room(txn, left_out))


def _without_room(txn: Transaction, links: Sequence[tuple[int, int, str]]) -> list[Problem]:
    if not links:
        return []
    ends = sorted({end for link in links for end in link[:2]})
    wanted = "SELECT id, key FROM memories WHERE id IN (SELECT value FROM carray(?))"
    keys = dict(rows(txn.connection, wanted, (integers(ends),)))
    hint = "The strongest declarations are used; this link is kept and takes effect once there is room."
    shown = f"speckit-memory lineage {shlex.quote(keys[links[0][1]])}"
    actions = (f"declare fewer links, or weaker ones: `{shown}` shows them",)
    return [
        Problem(
            "E094",
            f"'{keys[source]} {relation} {keys[target]}' is left out: a memory has at most {EDGES_PER_NODE} links",
            hint,
            actions,
            Where(keys[source], 1, 1),
        )
        for source, target, relation in links
    ]
