"""Walks along chosen links and directions: known answers, circles, and every walk against one by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import lineage
from speckit_memory.memory.store.reading.lineage import Direction, Walk, walk
from speckit_memory.memory.store.records import Document, Relation
from speckit_memory.memory.store.tables.graph.edges import add_edge
from speckit_memory.memory.store.writing import writer

Make = Callable[..., Document]
Arc = tuple[int, int, Relation]
CAUSED, ENABLED, SUPPORTS = Relation.CAUSED, Relation.ENABLED, Relation.SUPPORTS


def fill(database: Database, document: Make, memories: int, arcs: list[Arc]) -> None:
    with database.write() as txn:
        for number in range(1, memories + 1):
            writer.put_document(txn, document(f"k{number}", "a"), None, 1.0, None)
        for source, target, relation in arcs:
            add_edge(txn, source, target, relation, 0.5, "", "manual", 1.0)


def told(found: Walk) -> list[tuple[int, int, str, str, int]]:
    return [(s.source_id, s.target_id, str(s.relation), s.direction, s.hop) for s in found.steps]


CHAIN = [(1, 2, CAUSED), (2, 3, ENABLED), (3, 4, CAUSED), (5, 2, SUPPORTS)]


@pytest.mark.requirement("M8.directions")
def test_a_walk_follows_links_from_their_source_from_their_target_or_from_either(
    database: Database, document: Make
) -> None:
    fill(database, document, 5, CHAIN)
    connection = database.reader()
    assert told(walk(connection, 2, "outgoing", 3, ())) == [
        (2, 3, "enabled", "outgoing", 1), (3, 4, "caused", "outgoing", 2),
    ]  # fmt: skip
    assert told(walk(connection, 2, "incoming", 3, ())) == [
        (1, 2, "caused", "incoming", 1), (5, 2, "supports", "incoming", 1),
    ]  # fmt: skip
    assert told(walk(connection, 1, "both", 2, ())) == [
        (1, 2, "caused", "outgoing", 1), (2, 3, "enabled", "outgoing", 2), (5, 2, "supports", "incoming", 2),
    ]  # fmt: skip
    assert told(walk(connection, 4, "outgoing", 10, ())) == []


@pytest.mark.requirement("M8.filter")
def test_what_lies_behind_a_link_of_another_relation_is_not_reached(database: Database, document: Make) -> None:
    fill(database, document, 5, CHAIN)
    connection = database.reader()
    # 3 caused 4 lies behind 2 enabled 3: a filter after the walk would tell it
    assert told(walk(connection, 1, "outgoing", 10, ["caused"])) == [(1, 2, "caused", "outgoing", 1)]
    assert [pair[:2] for pair in told(walk(connection, 1, "outgoing", 10, ["caused", "enabled"]))] == [
        (1, 2), (2, 3), (3, 4),
    ]  # fmt: skip


@pytest.mark.requirement("M8.circles")
def test_circles_end_and_every_link_is_told_once_where_it_is_nearest(database: Database, document: Make) -> None:
    fill(database, document, 3, [(1, 2, CAUSED), (2, 3, CAUSED), (3, 1, CAUSED), (2, 1, ENABLED)])
    connection = database.reader()
    assert told(walk(connection, 1, "outgoing", 10, ())) == [
        (1, 2, "caused", "outgoing", 1), (2, 3, "caused", "outgoing", 2), (2, 1, "enabled", "outgoing", 2),
        (3, 1, "caused", "outgoing", 3),
    ]  # fmt: skip
    # the link between two memories that are as near is told from its source
    assert told(walk(connection, 1, "both", 10, ()))[-1] == (2, 3, "caused", "outgoing", 2)


@pytest.mark.requirement("M8.hops")
@pytest.mark.parametrize(
    ("direction", "hops", "relations", "codes"),
    [
        ("both", 0, (), ["E032"]), ("both", 11, (), ["E032"]), ("sideways", 3, (), ["E030"]),
        ("both", 3, ("cause",), ["E030"]), ("up", 11, ("cause", "caused", "because"), ["E030", "E030", "E030", "E032"]),
    ],
)  # fmt: skip
def test_all_that_is_wrong_with_a_question_is_said_at_once(
    database: Database, direction: Direction, hops: int, relations: tuple[str, ...], codes: list[str]
) -> None:
    with pytest.raises(SpeckitError) as caught:
        walk(database.reader(), 1, direction, hops, relations)
    assert [problem.code for problem in caught.value.problems] == codes


@pytest.mark.requirement("M8.hops")
def test_a_walk_of_ten_hops_goes_ten_hops(database: Database, document: Make) -> None:
    fill(database, document, 13, [(number, number + 1, CAUSED) for number in range(1, 13)])
    assert [step.hop for step in walk(database.reader(), 1, "outgoing", 10, ()).steps] == list(range(1, 11))


@pytest.mark.requirement("M8.lineage")
def test_more_links_than_are_told_are_said_to_be(
    database: Database, document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database, document, 6, [(number, number + 1, CAUSED) for number in range(1, 6)])
    connection = database.reader()
    assert not walk(connection, 1, "both", 10, ()).cut
    monkeypatch.setattr(lineage, "MOST_LINKS", 4)
    cut = walk(connection, 1, "both", 10, ())
    assert (cut.cut, [step.hop for step in cut.steps]) == (True, [1, 2, 3, 4])
    monkeypatch.setattr(lineage, "MOST_LINKS", 500)
    monkeypatch.setattr(lineage, "MOST_STEPS", 3)
    assert walk(connection, 1, "outgoing", 10, ()).cut


def by_hand(arcs: list[Arc], start: int, direction: Direction, hops: int, relations: list[str]) -> set[tuple[Arc, int]]:
    near, seen = {start}, {start}
    found: dict[Arc, int] = {}
    for hop in range(1, hops + 1):
        far: set[int] = set()
        for arc in arcs:
            source, target, relation = arc
            if relations and relation not in relations:
                continue
            for one, other, allowed in ((source, target, "outgoing"), (target, source, "incoming")):
                if direction in (allowed, "both") and one in near:
                    found.setdefault(arc, hop)
                    far.add(other)
        near = far - seen
        seen |= far
    return set(found.items())


ARCS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 6), st.sampled_from(list(Relation)))
    .filter(lambda arc: arc[0] != arc[1]),
    max_size=14, unique=True,
)  # fmt: skip


@given(
    ARCS, st.sampled_from(lineage.DIRECTIONS), st.integers(1, 10), st.lists(st.sampled_from(list(Relation)), max_size=3)
)
@settings(max_examples=examples(0.2))
@pytest.mark.requirement("M8.filter", "M8.circles", "M8.directions")
def test_a_walk_is_the_one_that_is_made_by_hand(
    new_database: Callable[[], Database],
    document: Make,
    arcs: list[Arc],
    direction: Direction,
    hops: int,
    relations: list[Relation],
) -> None:
    with new_database() as database:
        fill(database, document, 6, arcs)
        found = walk(database.reader(), 1, direction, hops, relations)
        assert {((s.source_id, s.target_id, s.relation), s.hop) for s in found.steps} == by_hand(
            arcs, 1, direction, hops, [str(relation) for relation in relations]
        )
        assert len(found.steps) == len({step.edge for step in found.steps})
