"""Links that documents declare, turned into causal edges (feature I3).

Declarations are kept as written. The edges made from them are a function of what is declared and what is stored, so it
does not matter in which order documents arrive, and a link finds its target whenever that appears or comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import NamedTuple

import apsw

from memory.store import changes
from memory.store.connection import Transaction
from memory.store.edges import EDGES_PER_NODE
from memory.store.queries import rows

Triple = tuple[int, int, str]


class Declared(NamedTuple):
    """What a document says about an edge."""

    strength: float
    evidence: str


def resolve_links(txn: Transaction, now: float) -> int:
    """Makes the edges of `created_by` "document" exactly those that documents declare; returns how many are new.

    A target is the key of a memory or the end of exactly one key ("plan.md" for "specs/plan.md"). Links to the memory
    itself and to what is not stored make no edge. A declaration takes over an edge that an automatic process made, and
    leaves a manual one alone. Where a memory would get more than 20 edges, its strongest declarations count.
    """
    connection = txn.connection
    existing = {
        (source, target, relation): (edge_id, Declared(strength, evidence), created_by)
        for edge_id, source, target, relation, strength, evidence, created_by in rows(
            connection,
            "SELECT id, source_id, target_id, relation, strength, evidence, created_by FROM causal_edges ORDER BY id",
        )
    }
    wanted = _within_limit(
        {triple: said for triple, said in _declared(connection).items() if _maker(existing, triple) != "manual"},
        [triple for triple, (_, _, created_by) in existing.items() if created_by != "document"],
    )
    gone = [t for t, (_, _, created_by) in existing.items() if created_by == "document" and t not in wanted]
    new = [triple for triple in wanted if triple not in existing]
    changed = [t for t, said in wanted.items() if t in existing and existing[t][1:] != (said, "document")]
    with txn.part():
        connection.executemany("DELETE FROM causal_edges WHERE id = ?", [(existing[triple][0],) for triple in gone])
        connection.executemany(
            "UPDATE causal_edges SET strength = ?, evidence = ?, created_by = 'document' WHERE id = ?",
            [(*wanted[triple], existing[triple][0]) for triple in changed],
        )
        connection.executemany(
            "INSERT INTO causal_edges (source_id, target_id, relation, strength, evidence, created_by, created_at) "
            "VALUES (?, ?, ?, ?, ?, 'document', ?)",
            [(*triple, *wanted[triple], now) for triple in new],
        )
        touched = {memory_id for source, target, _ in (*gone, *changed, *new) for memory_id in (source, target)}
        changes.record(txn, sorted(touched), "edges")
    return len(new)


def _declared(connection: apsw.Connection) -> dict[Triple, Declared]:
    """Every edge that documents declare between stored memories; the strongest declaration of each counts."""
    find = _finder(rows(connection, "SELECT key, id FROM memories"))
    declared: dict[Triple, Declared] = {}
    for memory_id, relation, target, strength, evidence, reverse in rows(
        connection,
        "SELECT memory_id, relation, target, strength, evidence, reverse FROM declared_links "
        "ORDER BY memory_id, ordinal",
    ):
        other = find(target)
        if other is None or other == memory_id:
            continue
        triple = (other, memory_id, relation) if reverse else (memory_id, other, relation)
        if triple not in declared or strength > declared[triple].strength:
            declared[triple] = Declared(strength, evidence)
    return declared


def _finder(keys: list[tuple[str, int]]) -> Callable[[str], int | None]:
    """A function from a link's target to the id of a memory: by its key, or by the end of a single key."""
    by_key = dict(keys)
    by_name: dict[str, list[str]] = {}
    for key in by_key:
        by_name.setdefault(PurePosixPath(key).name, []).append(key)

    def find(target: str) -> int | None:
        if target in by_key:
            return by_key[target]
        ending = [key for key in by_name.get(PurePosixPath(target).name, ()) if key.endswith(f"/{target}")]
        return by_key[ending[0]] if len(ending) == 1 else None

    return find


def _within_limit(declared: dict[Triple, Declared], others: list[Triple]) -> dict[Triple, Declared]:
    """The declarations that fit beside the other edges, strongest first, then by their ids."""
    degrees = Counter(memory_id for source, target, _ in others for memory_id in (source, target))
    taken = set(others)
    fitting: dict[Triple, Declared] = {}
    for triple in sorted(declared, key=lambda triple: (-declared[triple].strength, triple)):
        source, target, _ = triple
        if triple not in taken:
            if max(degrees[source], degrees[target]) >= EDGES_PER_NODE:
                continue
            degrees.update((source, target))
        fitting[triple] = declared[triple]
    return fitting


def _maker(existing: dict[Triple, tuple[int, Declared, str]], triple: Triple) -> str:
    return existing[triple][2] if triple in existing else ""
