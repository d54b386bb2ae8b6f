"""The lineage of a memory: the links around it, hop by hop, which show reasons and consequences (feature M8).

One recursive query walks the graph. Links are filtered within the walk: a link of another relation, or against the
direction, is not followed, so that memories behind it are not reached. The walk yields distinct (memory, distance)
pairs, so that cycles end at the limit of hops, and stops after `MOST_STEPS` pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from speckit_memory.errors import SpeckitError, out_of_range, refused
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows, texts
from speckit_memory.memory.store.reading.traversal import MOST_HOPS
from speckit_memory.memory.store.records import Relation

Direction = Literal["outgoing", "incoming", "both"]
DIRECTIONS: tuple[Direction, ...] = ("outgoing", "incoming", "both")
MOST_STEPS = 20_000
"""Maximum number of (memory, distance) pairs per walk, nearest first."""
MOST_LINKS = 500
"""Maximum number of links returned, nearest first."""

# {out} and {into} are TRUE where links are followed from their source and from their target. step = 2 * hop, plus 1
# where the link was followed from its target: min(step) keeps the shortest way to each link and its direction.
# `walked` ends the recursion, which goes on only as long as rows are read. MATERIALIZED, since two SELECTs read
# `distance`; CROSS JOIN keeps the order: memories first, then their edges by index.
_WALK = """
WITH RECURSIVE
reach (id, hop) AS (
    SELECT CAST(:start AS INTEGER), 0
    UNION
    SELECT iif({out} AND e.source_id = r.id, e.target_id, e.source_id), r.hop + 1
    FROM reach r JOIN causal_edges e ON {joined}
    WHERE r.hop < :hops AND e.relation IN (SELECT value FROM carray(:relations))
),
walked (id, hop) AS MATERIALIZED (SELECT id, hop FROM reach LIMIT :steps),
distance (id, hop) AS MATERIALIZED (SELECT id, min(hop) FROM walked GROUP BY id),
passed (edge, step) AS (
    SELECT e.id, 2 * d.hop + 2 FROM distance d CROSS JOIN causal_edges e ON e.source_id = d.id
    WHERE {out} AND d.hop < :hops AND e.relation IN (SELECT value FROM carray(:relations))
    UNION ALL
    SELECT e.id, 2 * d.hop + 3 FROM distance d CROSS JOIN causal_edges e ON e.target_id = d.id
    WHERE {into} AND d.hop < :hops AND e.relation IN (SELECT value FROM carray(:relations))
),
first (edge, step) AS MATERIALIZED (SELECT edge, min(step) FROM passed GROUP BY edge)
SELECT e.id, e.source_id, s.key, s.title, e.target_id, t.key, t.title, e.relation, e.strength, e.evidence,
    e.created_by, e.principal, iif(f.step % 2 = 1, 'incoming', 'outgoing'), f.step / 2 AS hop,
    (SELECT count(*) FROM walked)
FROM first f JOIN causal_edges e ON e.id = f.edge JOIN memories s ON s.id = e.source_id
JOIN memories t ON t.id = e.target_id
ORDER BY hop, e.strength DESC, e.id LIMIT :links
"""


_JOINED: dict[Direction, str] = {
    "outgoing": "e.source_id = r.id",
    "incoming": "e.target_id = r.id",
    "both": "(e.source_id = r.id OR e.target_id = r.id)",
}
"""SQL for the links that a step follows."""


class LineageStep(NamedTuple):
    """A link on a walk. `direction` is "outgoing" if it was followed from source to target; `hop` counts from 1."""

    edge: int
    source_id: int
    source: str
    source_title: str
    target_id: int
    target: str
    target_title: str
    relation: Relation
    strength: float
    evidence: str
    created_by: str
    principal: str
    direction: Literal["outgoing", "incoming"]
    hop: int


class Walk(NamedTuple):
    """The links on a walk, nearest and strongest first, and whether the result was cut at a limit."""

    steps: tuple[LineageStep, ...]
    cut: bool


def walk(connection: Connection, memory_id: int, direction: Direction, hops: int, relations: Sequence[str]) -> Walk:
    """Walks the causal graph from a memory.

    Args:
        connection: A connection to the store.
        memory_id: The memory where the walk starts.
        direction: "outgoing", "incoming" or "both".
        hops: Largest distance of a link, 1 to 10.
        relations: Names of the relations to follow; all six when empty.

    Returns:
        Each link within reach once, at most `MOST_LINKS`.

    Raises:
        SpeckitError: E030 for an unknown direction or relation, E032 for hops out of range.
    """
    chosen = _checked(direction, hops, relations)
    found = rows(
        connection,
        _WALK.format(out=direction != "incoming", into=direction != "outgoing", joined=_JOINED[direction]),
        {
            "start": memory_id,
            "hops": hops,
            "relations": texts(chosen),
            "steps": MOST_STEPS,
            "links": MOST_LINKS + 1,
        },
    )
    steps = tuple(LineageStep._make((*row[:7], Relation(row[7]), *row[8:14])) for row in found[:MOST_LINKS])
    # row[14] is the number of pairs visited, the same in every row
    return Walk(steps, len(found) > MOST_LINKS or any(row[14] >= MOST_STEPS for row in found[:1]))


def _checked(direction: str, hops: int, relations: Sequence[str]) -> list[str]:
    problems = []
    if direction not in DIRECTIONS:
        problems.append(refused("the direction", direction, DIRECTIONS))
    if type(hops) is not int or not 1 <= hops <= MOST_HOPS:
        problems.append(out_of_range("hops", hops, f"1 to {MOST_HOPS}"))
    known = [str(relation) for relation in Relation]
    problems += [refused("the relation", name, known) for name in relations if name not in known]
    if problems:
        raise SpeckitError.of(problems)
    return [str(relation) for relation in relations] or known
