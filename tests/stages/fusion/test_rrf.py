from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
import pytest
from components.tables import candidates, parts, query, scores, tables
from hypothesis import given

from speckit_memory.pipeline.model.columns import Candidates
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.roles.contracts import PipelineContext
from speckit_memory.stages.fusion.rrf import Rrf, RrfParams

TWO = candidates({"vector": {1: 0.9, 2: 0.5}, "bm25": {2: 8.0, 3: 2.0}})


def rrf(**params: Any) -> Rrf:
    return Rrf(RrfParams.model_validate(params))


@pytest.mark.requirement("F1.term", "F1.bonus")
def test_scores_are_sums_of_weight_over_k_plus_rank_and_a_bonus_per_further_channel() -> None:
    answer = rrf().fuse(query(), TWO)

    assert parts(answer, TWO) == {
        1: {"vector": round(1 / 61, 6)},
        2: {"vector": round(1 / 62, 6), "bm25": round(1 / 61, 6), "convergence": 0.1},
        3: {"bm25": round(1 / 62, 6)},
    }
    assert scores(answer, TWO) == {2: round(0.1 + 1 / 62 + 1 / 61, 6), 1: round(1 / 61, 6), 3: round(1 / 62, 6)}


@pytest.mark.requirement("F1")
def test_hits_of_one_score_get_the_same_term() -> None:
    table = candidates({"degree": {1: 0.15, 2: 0.15, 3: 0.05}, "vector": {2: 0.9, 1: 0.9}})

    # 1 and 2 are both first of the degrees and of the vectors; 3 has two better ones before it, so its rank is 3
    both = {"degree": round(1 / 61, 6), "vector": round(1 / 61, 6), "convergence": 0.1}
    assert parts(rrf().fuse(query(), table), table) == {1: both, 2: both, 3: {"degree": round(1 / 63, 6)}}


@pytest.mark.requirement("F1.graph")
def test_the_graph_channel_weighs_one_and_a_half_unless_told_otherwise() -> None:
    table = candidates({"graph": {1: 3.0}, "vector": {1: 0.5}})

    assert parts(rrf().fuse(query(), table), table)[1]["graph"] == round(1.5 / 61, 6)
    assert parts(rrf(weights={"graph": 0.5, "vector": 2}).fuse(query(), table), table) == {
        1: {"graph": round(0.5 / 61, 6), "vector": round(2 / 61, 6), "convergence": 0.1}
    }


@pytest.mark.requirement("F1.lists")
def test_any_number_of_lists_converge() -> None:
    table = candidates({"vector": {1: 1.0}, "bm25": {1: 1.0}, "fts5": {1: 1.0}, "degree": {2: 1.0}})

    assert parts(rrf(k=59).fuse(query(), table), table) == {
        1: {"vector": round(1 / 60, 6), "bm25": round(1 / 60, 6), "fts5": round(1 / 60, 6), "convergence": 0.2},
        2: {"degree": round(1 / 60, 6)},
    }


def test_channels_and_variants_each_count_once() -> None:
    table = candidates({"vector": {1: 1.0}, "bm25": {1: 1.0}, "vector~1": {1: 1.0}})

    assert parts(rrf().fuse(query(), table), table)[1] == {
        "vector": round(1 / 61, 6),
        "bm25": round(1 / 61, 6),
        "vector~1": round(1 / 61, 6),
        "convergence": 0.1,
        "variants": 0.1,
    }


@pytest.mark.requirement("F4", "F1.normalised")
def test_normalised_scores_span_the_unit_interval() -> None:
    answer = rrf(normalise="min_max").fuse(query(), TWO)

    best, middle, worst = 0.1 + 1 / 62 + 1 / 61, 1 / 61, 1 / 62
    assert scores(answer, TWO, Scale.UNIT) == {2: 1.0, 1: round((middle - worst) / (best - worst), 6), 3: 0.0}
    assert Rrf.scale(RrfParams(normalise="min_max")) is Scale.UNIT
    assert Rrf.scale(RrfParams()) is Scale.RANK_TERM


@pytest.mark.requirement("F3")
@pytest.mark.parametrize(
    ("intent", "semantic", "keyword", "recency", "graph"),
    [
        ("add_feature", 0.5, 0.3, 0.2, 0.35),
        ("fix_bug", 0.4, 0.4, 0.2, 0.25),
        ("refactor", 0.6, 0.3, 0.1, 0.25),
        ("security_audit", 0.3, 0.5, 0.2, 0.25),
        ("understand", 0.7, 0.2, 0.1, 0.25),
        ("find_spec", 0.7, 0.2, 0.1, 0.40),
        ("find_decision", 0.3, 0.2, 0.1, 0.65),
    ],
)
def test_weights_follow_the_profile_of_a_certain_intent(
    intent: str, semantic: float, keyword: float, recency: float, graph: float
) -> None:
    table = candidates({"vector": {1: 1.0}, "fts5": {1: 1.0}, "bm25": {1: 1.0}, "graph": {1: 1.0}}, ages={1: 365})

    answer = rrf(weights="by_intent", k=59, convergence_bonus=0).fuse(query(intent, 0.3), table)

    assert parts(answer, table)[1] == {
        "vector": round(semantic / 60, 6),
        "fts5": round(keyword / 60, 6),
        "bm25": round(keyword / 60, 6),
        "graph": round(graph / 60, 6),
        "recency": round(exp(-1) * recency * 0.1, 6),
    }


@pytest.mark.requirement("F3", "C8.static")
def test_below_a_confidence_of_three_tenths_the_weights_are_static() -> None:
    table = candidates({"vector": {1: 1.0}, "fts5": {1: 1.0}, "bm25": {1: 1.0}, "graph": {1: 1.0}}, ages={1: 365})

    answer = rrf(weights="by_intent", k=59, convergence_bonus=0).fuse(query("find_decision", 0.29), table)

    assert parts(answer, table)[1] == {
        "vector": round(1.0 / 60, 6),
        "fts5": round(0.8 / 60, 6),
        "bm25": round(0.6 / 60, 6),
        "graph": round(0.5 / 60, 6),
    }


@pytest.mark.requirement("F3.shift")
@pytest.mark.parametrize(
    ("kind", "semantic", "keyword", "recency"),
    [("decision", 0.3, 0.5, 0.2), ("implementation", 0.3, 0.4, 0.3), ("research", 0.5, 0.3, 0.2)],
)
def test_the_kind_of_document_shifts_a_tenth(kind: str, semantic: float, keyword: float, recency: float) -> None:
    table = candidates({"vector": {1: 1.0}, "bm25": {1: 1.0}}, ages={1: 0})

    asked = query("fix_bug", 0.9, wanted=Filter(context_type=kind))
    answer = rrf(weights="by_intent", k=59, convergence_bonus=0).fuse(asked, table)

    assert parts(answer, table)[1] == {
        "vector": round(semantic / 60, 6),
        "bm25": round(keyword / 60, 6),
        "recency": round(recency * 0.1, 6),
    }


def test_an_unknown_age_earns_no_bonus() -> None:
    table = candidates({"vector": {1: 1.0}})

    answer = rrf(weights="by_intent").fuse(query("fix_bug", 0.9), table)

    assert "recency" not in parts(answer, table)[1]


@pytest.mark.requirement("P6")
def test_weighing_by_intent_is_declared() -> None:
    assert Rrf.weighs_intent(RrfParams(weights="by_intent")) == "channels"
    assert Rrf.weighs_intent(RrfParams(weights="by_intent_ageless")) == "channels"
    assert Rrf.weighs_intent(RrfParams()) is None


@pytest.mark.requirement("P7")
def test_a_weight_of_an_undeclared_channel_is_reported_at_its_place() -> None:
    here = PipelineContext(
        channels=("vector",), scales=(Scale.COSINE,), steps=("vector", "rrf"), uses=("vector", "rrf")
    )

    problems = list(Rrf.check(RrfParams(weights={"vector": 1.0, "bm52": 0.5}), here))

    assert problems == [
        (("weights", "bm52"), "there is no channel 'bm52'; declared channels: vector"),
    ]


@given(tables())
def test_a_better_rank_in_one_list_never_lowers_the_score(table: Candidates) -> None:
    answer = rrf(convergence_bonus=0).fuse(query(), table)
    total = answer.parts.sum(axis=1)

    rank = np.where(table.rank < 0, np.inf, table.rank)
    for a in range(len(table)):
        for b in range(len(table)):
            if np.all(rank[a] <= rank[b]):
                assert total[a] >= total[b]


@pytest.mark.requirement("F4")
@given(tables())
def test_normalised_scores_lie_in_the_unit_interval_and_keep_the_order(table: Candidates) -> None:
    plain = rrf().fuse(query(), table).parts.sum(axis=1)
    mapped = rrf(normalise="min_max").fuse(query(), table).parts.sum(axis=1)

    assert np.all((mapped >= -1e-12) & (mapped <= 1 + 1e-12))
    order = np.argsort(plain)
    assert np.all(np.diff(mapped[order]) >= -1e-9)
