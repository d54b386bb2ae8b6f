"""Channels that start from full text: FTS5, graph and degree."""

from __future__ import annotations

from math import log

import pytest
from components.asking import query, scores

from speckit_memory.channels.degree import MAXIMUM_WITHOUT_EDGES, Degree, DegreeParams
from speckit_memory.channels.fts5 import Fts5, Fts5Params
from speckit_memory.channels.graph import Graph, GraphParams
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.testing import Edge, FakeStore, Memory

# The fake full-text score is Σ weight · frequency over the columns: a word in the text counts 1, in the title 10.


@pytest.mark.requirement("C2.weights")
def test_full_text_weighs_columns_as_the_parameters_say() -> None:
    store = FakeStore(Memory(1, "alpha", ("beta",)), Memory(2, "beta", ("alpha alpha alpha",)))
    flat = Fts5Params.model_validate({"weights": {"title": 1, "triggers": 1, "path": 1, "body": 1}})

    by_title = Fts5(Fts5Params()).search(query("alpha"), 10, store)
    by_count = Fts5(flat).search(query("alpha"), 10, store)

    assert scores(by_title) == {1: 10.0, 2: 3.0}
    assert scores(by_count) == {2: 3.0, 1: 1.0}
    assert by_title.scale is Scale.BM25


GRAPH = FakeStore(
    Memory(1, "alpha", ("text",)),
    Memory(2, "", ("alpha",)),
    Memory(3, "", ("neighbour of both",)),
    Memory(4, "", ("neighbour of the second",), folder="other"),
    Memory(5, "", ("two edges away",)),
    Memory(6, "", ("hidden",), tier="deprecated"),
    edges=(
        Edge(1, 3, "caused", 0.5),
        Edge(3, 2, "supports", 1.0),
        Edge(4, 2, "supersedes", 0.8),
        Edge(3, 5, "caused", 0.5),
        Edge(1, 6, "caused", 1.0),
        Edge(1, 2, "caused", 1.0),
    ),
)


# The seeds' BM25: of 6 memories 2 hold alpha, idf = log((6 - 2 + .5)/(2 + .5) + 1) = log 2.8. Memory 1 has it 10 times
# (the title's weight) among 11 words, memory 2 once in 1 word; all bags have 11 + 1 + 3 + 4 + 3 + 1 = 23 words, 23/6 on
# average. norm = 1.2 · (.25 + .75 · length · 6/23).
FIRST = log(2.8) * 10 * 2.2 / (10 + 1.2 * (0.25 + 0.75 * 11 * 6 / 23))  # 1.758
SECOND = log(2.8) * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 * 6 / 23))  # 1.476


@pytest.mark.requirement("C4.seeds")
def test_neighbours_score_edge_strength_times_relevance_of_their_seed() -> None:
    found = Graph(GraphParams()).search(query("alpha"), 10, GRAPH)

    # 3: max(.5 · FIRST, 1 · SECOND); 4: .8 · SECOND. Seeds and deprecated memories are left out.
    assert scores(found) == pytest.approx({3: SECOND, 4: 0.8 * SECOND}, abs=1e-6)
    assert found.scale is Scale.BM25


@pytest.mark.requirement("C4")
def test_more_hops_reach_further() -> None:
    found = Graph(GraphParams(hops=2)).search(query("alpha"), 10, GRAPH)

    # 4 from 1 by way of 2: 1 · .8 · FIRST; 5 from 2 by way of 3: 1 · .5 · SECOND.
    assert scores(found) == pytest.approx({3: SECOND, 4: 0.8 * FIRST, 5: 0.5 * SECOND}, abs=1e-6)


def test_neighbours_outside_the_filter_are_not_found() -> None:
    store = FakeStore(Memory(1, "", ("alpha",), folder="in"), Memory(2, "", ("x",), folder="out"), edges=(Edge(1, 2),))

    assert len(Graph(GraphParams()).search(query("alpha", wanted=Filter(folder="in")), 10, store)) == 0


def test_without_edges_or_seeds_the_graph_finds_nothing() -> None:
    assert len(Graph(GraphParams()).search(query("alpha"), 10, FakeStore(Memory(1, "", ("alpha",))))) == 0
    assert len(Graph(GraphParams()).search(query("nothing"), 10, GRAPH)) == 0


DEGREE = FakeStore(
    Memory(1, "", ("alpha",)),
    Memory(2, "", ("alpha",), tier="constitutional"),
    Memory(3, "", ("alpha",)),
    Memory(4, "", ("beta",)),
    edges=(
        Edge(1, 4, "caused", 1.0),
        Edge(2, 4, "caused", 1.0),
        Edge(1, 2, "supports", 0.6),
        Edge(4, 2, "enabled", 1.0),
    ),
)


@pytest.mark.requirement("C5.log")
def test_found_memories_are_ranked_by_weighted_degree() -> None:
    found = Degree(DegreeParams()).search(query("alpha"), 10, DEGREE)

    # 1: 1 · 1 (caused) + .5 · .6 (supports) = 1.3. The greatest degree of a memory that is not constitutional is that
    # of 4: 1 + 1 + .8 = 2.8, although the query does not find it. 2 is constitutional, 3 has no edge.
    assert scores(found) == {1: round(0.15 * log(2.3) / log(3.8), 6)}
    assert found.scale is Scale.UNIT


@pytest.mark.requirement("C5.weights")
def test_each_relation_has_its_weight_and_fifty_is_the_most() -> None:
    relations = ("caused", "derived_from", "enabled", "contradicts", "supersedes", "supports")
    store = FakeStore(
        *(Memory(i, "", ("alpha",)) for i in range(1, 8)),
        *(Memory(i, "", ("beta",)) for i in range(10, 70)),
        edges=(
            *(Edge(i, i + 9, relation) for i, relation in enumerate(relations, start=1)),
            *(Edge(7, i, "caused") for i in range(10, 70)),
        ),
    )

    found = Degree(DegreeParams()).search(query("alpha"), 10, store)

    # 7 has sixty edges of weight 1, which count as fifty: .15 · log 51 / log 51; the others
    # .15 · log(1 + weight) / log 51
    weights = {1: 1.0, 2: 0.9, 3: 0.8, 4: 0.7, 5: 0.6, 6: 0.5, 7: 50.0}
    assert scores(found) == {i: round(0.15 * log(1 + weight) / log(51), 6) for i, weight in weights.items()}


@pytest.mark.requirement("C5.cap")
def test_degrees_above_the_cap_count_as_the_cap() -> None:
    found = Degree(DegreeParams(max_degree=1.0)).search(query("alpha beta"), 10, DEGREE)

    assert scores(found) == {1: 0.15, 4: 0.15}


@pytest.mark.requirement("C5.no_edges")
def test_without_edges_no_memory_has_a_degree() -> None:
    # 0.15 · log(1 + 0) / log(1 + 15) = 0, and what scores nothing is not found
    assert MAXIMUM_WITHOUT_EDGES == 15.0
    assert len(Degree(DegreeParams()).search(query("alpha"), 10, FakeStore(Memory(1, "", ("alpha",))))) == 0


@pytest.mark.requirement("C5.constitutional")
def test_constitutional_memories_have_no_degree_and_do_not_lower_that_of_others() -> None:
    store = FakeStore(
        Memory(1, "", ("alpha",), tier="constitutional"),
        *(Memory(i, "", ("alpha",)) for i in (2, 3, 4)),
        edges=(Edge(1, 2), Edge(1, 3), Edge(1, 4), Edge(2, 3)),
    )

    found = Degree(DegreeParams()).search(query("alpha"), 10, store)

    # supports weighs .5: 2 and 3 have two edges, 1.0 each, the greatest; 4 has one, .5. That of 1 does not count.
    assert scores(found) == {2: 0.15, 3: 0.15, 4: round(0.15 * log(1.5) / log(2), 6)}
