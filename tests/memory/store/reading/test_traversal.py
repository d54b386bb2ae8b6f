from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import apsw
import pytest
from answered import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import traversal
from speckit_memory.memory.store.records import Document, Relation
from speckit_memory.memory.store.tables.graph.edges import add_edge
from speckit_memory.memory.store.writing import writer

Make = Callable[..., Document]
Arc = tuple[int, int, Relation, float]
WEIGHTS = {"supersedes": 1.5, "contradicts": 0.8}


def fill(database: Database, document: Make, memories: int, arcs: list[Arc]) -> None:
    with database.write() as txn:
        for number in range(1, memories + 1):
            writer.put_document(txn, document(f"k{number}", "a"), None, 1.0, None)
        for source, target, relation, strength in arcs:
            add_edge(txn, source, target, relation, strength, "", "manual", 1.0)


def columns(database: Database, seeds: list[int], hops: int) -> list[tuple[int, int, int, float]]:
    found = traversal.neighbours(database.reader(), seeds, hops, WEIGHTS)
    return list(zip(found.seeds.tolist(), found.ids.tolist(), found.hops.tolist(), found.product.tolist(), strict=True))


def walks(arcs: list[Arc], start: int, length: int) -> Iterator[tuple[int, float]]:
    """Every walk of this many edges, by brute force: where it ends and its product."""
    if length == 0:
        yield start, 1.0
        return
    for end, product in walks(arcs, start, length - 1):
        for source, target, relation, strength in arcs:
            for near, far in ((source, target), (target, source)):
                if near == end:
                    yield far, product * strength * WEIGHTS.get(relation, 1.0)


def by_hand(arcs: list[Arc], seeds: list[int], hops: int) -> list[tuple[int, int, int, float]]:
    found: dict[tuple[int, int], tuple[int, float]] = {(seed, seed): (0, 1.0) for seed in seeds}
    for seed in seeds:
        for length in range(1, hops + 1):
            for end, product in walks(arcs, seed, length):
                shortest, best = found.get((seed, end), (length, -1.0))
                if shortest == length:
                    found[seed, end] = (length, max(best, product))
    return sorted((seed, end, hop, product) for (seed, end), (hop, product) in found.items() if end not in seeds)


@pytest.mark.requirement("M8.directions")
def test_neighbours_carry_the_shortest_distance_and_its_best_product(database: Database, document: Make) -> None:
    fill(
        database,
        document,
        6,
        [
            (1, 2, Relation.CAUSED, 0.5),
            (2, 3, Relation.SUPERSEDES, 1.0),
            (4, 3, Relation.SUPPORTS, 0.9),
            (1, 4, Relation.CONTRADICTS, 1.0),
            (3, 5, Relation.CAUSED, 1.0),
            (3, 1, Relation.ENABLED, 0.1),
        ],
    )
    # 3 is next to 1 by a weak edge: the stronger walks of two edges do not count.
    assert columns(database, [1], 1) == [(1, 2, 1, 0.5), (1, 3, 1, 0.1), (1, 4, 1, 0.8)]
    assert columns(database, [1], 2) == [(1, 2, 1, 0.5), (1, 3, 1, 0.1), (1, 4, 1, 0.8), (1, 5, 2, 0.1)]
    # 1 and 5 are seeds: left out as neighbours, passed through on the way.
    assert columns(database, [5, 1], 2) == [
        (1, 2, 1, 0.5),
        (1, 3, 1, 0.1),
        (1, 4, 1, 0.8),
        (5, 2, 2, 1.5),
        (5, 3, 1, 1.0),
        (5, 4, 2, 0.9),
    ]
    assert columns(database, [6], 3) == columns(database, [99], 3) == columns(database, [], 3) == []


@st.composite
def graphs(draw: st.DrawFn) -> list[Arc]:
    ends = draw(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)).filter(lambda e: e[0] != e[1]), max_size=9))
    chosen = {(*end, draw(st.sampled_from(list(Relation)))) for end in ends}
    return [(*triple, draw(st.sampled_from([0.0, 0.25, 0.5, 1.0]))) for triple in sorted(chosen)]


@given(graphs(), st.lists(st.integers(1, 6), unique=True, max_size=3), st.integers(1, 3))
@settings(max_examples=examples(0.2))
@pytest.mark.requirement("M8")
def test_neighbours_are_those_of_a_walk_by_hand(
    new_database: Callable[[], Database], document: Make, arcs: list[Arc], seeds: list[int], hops: int
) -> None:
    with new_database() as database:
        fill(database, document, 6, arcs)
        found, expected = columns(database, seeds, hops), by_hand(arcs, seeds, hops)
        assert [way for *way, _ in found] == [way for *way, _ in expected]
        assert [product for *_, product in found] == pytest.approx([product for *_, product in expected])


def by_layers(arcs: list[Arc], seeds: list[int], hops: int) -> list[tuple[int, int, int, float]]:
    """Layer by layer from each seed, every product made in the order of the walk: equal to the last bit."""
    found = []
    for seed in sorted(set(seeds)):
        best = {seed: (0, 1.0)}
        for hop in range(1, hops + 1):
            layer: dict[int, float] = {}
            for source, target, relation, strength in arcs:
                for near, far in ((source, target), (target, source)):
                    if best.get(near, (-1, 0.0))[0] == hop - 1 and far not in best:
                        product = best[near][1] * strength * WEIGHTS.get(relation, 1.0)
                        layer[far] = max(layer.get(far, -1.0), product)
            best |= {far: (hop, product) for far, product in layer.items()}
        found += [(seed, far, hop, product) for far, (hop, product) in best.items() if far not in seeds]
    return sorted(found)


strengths = st.floats(0, 1, allow_subnormal=False)


@given(
    st.dictionaries(
        st.tuples(st.integers(1, 12), st.integers(1, 12), st.sampled_from(list(Relation))).filter(
            lambda e: e[0] != e[1]
        ),
        strengths,
        max_size=40,
    ),
    st.lists(st.integers(1, 12), max_size=5),
    st.integers(1, 10),
)
@settings(max_examples=examples(0.3))
@pytest.mark.requirement("F11", "M8")
def test_the_recursive_query_is_equal_to_a_walk_by_layers_to_the_last_bit(
    new_database: Callable[[], Database],
    document: Make,
    edges: dict[tuple[int, int, Relation], float],
    seeds: list[int],
    hops: int,
) -> None:
    arcs = [(*ends, strength) for ends, strength in edges.items()]
    with new_database() as database:
        fill(database, document, 12, arcs)

        assert columns(database, seeds, hops) == by_layers(arcs, seeds, hops)


@pytest.mark.requirement("F11", "M8")
def test_a_walk_is_one_recursive_query(store_file: Database, document: Make) -> None:
    # a circle of three: 1 is met again after three edges, and nothing comes of it
    circle = [(1, 2, Relation.CAUSED, 0.5), (2, 3, Relation.SUPERSEDES, 0.5), (3, 1, Relation.CONTRADICTS, 0.5)]
    fill(store_file, document, 3, circle)
    asked: list[str] = []
    store_file.reader().trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: asked.append(event["sql"]))

    found = columns(store_file, [1], 10)

    assert found == [(1, 2, 1, 0.5), (1, 3, 1, 0.4)]
    assert [sql.split()[:2] for sql in asked] == [["WITH", "RECURSIVE"]]


@pytest.mark.requirement("M8")
def test_ten_hops_through_a_dense_graph_stay_small(database: Database, document: Make) -> None:
    # Ten layers of four, all connected: 4^10 walks, 40 memories.
    arcs = [
        (layer * 4 + a + 1, (layer + 1) * 4 + b + 1, Relation.CAUSED, 0.1 + (a * 4 + b) / 20)
        for layer in range(10)
        for a in range(4)
        for b in range(4)
    ]
    fill(database, document, 44, arcs)
    reached = columns(database, [1], 10)
    assert len(reached) == 43
    assert max(hop for _, _, hop, _ in reached) == 10


@pytest.mark.parametrize("hops", [0, -1, 11])
@pytest.mark.requirement("M8.hops")
def test_hops_out_of_range_are_refused(database: Database, hops: int) -> None:
    with refused("E032"):
        traversal.neighbours(database.reader(), [1], hops, {})


@pytest.mark.requirement("C5")
def test_degrees_sum_weight_times_strength_over_both_ends(database: Database, document: Make) -> None:
    fill(
        database,
        document,
        4,
        [
            (1, 2, Relation.CAUSED, 0.5),
            (2, 3, Relation.SUPERSEDES, 1.0),
            (3, 2, Relation.CONTRADICTS, 0.5),
        ],
    )
    ids, sums = traversal.degrees(database.reader(), WEIGHTS)
    assert dict(zip(ids.tolist(), sums.tolist(), strict=True)) == pytest.approx({1: 0.5, 2: 2.4, 3: 1.9})


def test_an_empty_graph_has_no_degrees(database: Database) -> None:
    ids, sums = traversal.degrees(database.reader(), WEIGHTS)
    assert (ids.tolist(), sums.tolist()) == ([], [])


@given(graphs(), st.randoms(use_true_random=False))
@settings(max_examples=examples(0.1))
def test_the_order_in_which_edges_came_changes_no_answer(
    new_database: Callable[[], Database], document: Make, arcs: list[Arc], random: Random
) -> None:
    shuffled = list(arcs)
    random.shuffle(shuffled)
    answers = []
    for order in (arcs, shuffled):
        with new_database() as database:
            fill(database, document, 6, order)
            ids, sums = traversal.degrees(database.reader(), WEIGHTS)
            answers.append((columns(database, [1, 2], 3), ids.tolist(), sums.tolist()))
    assert answers[0] == answers[1]
