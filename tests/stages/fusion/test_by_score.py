"""Fusers that keep the size of scores: z-score, relative score, and none at all."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

import numpy as np
import pytest
from components.tables import candidates, parts, query, scores, tables
from hypothesis import given

from speckit_memory.pipeline.model.columns import Candidates
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import PipelineContext
from speckit_memory.stages.fusion.rsf import Rsf, RsfParams
from speckit_memory.stages.fusion.single import Single, SingleParams
from speckit_memory.stages.fusion.z_score import ZScore, ZScoreParams


def z_score(**params: Any) -> ZScore:
    return ZScore(ZScoreParams.model_validate(params))


def rsf(**params: Any) -> Rsf:
    return Rsf(RsfParams.model_validate(params))


# bm25: mean 4, deviation √((4 + 0 + 4)/3) = √(8/3); vector: mean .5, deviation .25.
TWO = candidates({"bm25": {1: 6.0, 2: 4.0, 3: 2.0}, "vector": {1: 0.25, 4: 0.75}})
Z = round(2 / sqrt(8 / 3), 6)


def test_scores_are_weighted_standard_deviations_and_a_missing_one_is_the_lowest() -> None:
    answer = z_score(weights={"bm25": 0.5}).fuse(query(), TWO)

    assert parts(answer, TWO) == {
        1: {"bm25": pytest.approx(Z / 2, abs=1e-6), "vector": -1.0},
        2: {"vector": -1.0},
        3: {"bm25": pytest.approx(-Z / 2, abs=1e-6), "vector": -1.0},
        4: {"bm25": pytest.approx(-Z / 2, abs=1e-6), "vector": 1.0},
    }


def test_a_missing_score_may_count_as_the_mean() -> None:
    answer = z_score(missing="mean").fuse(query(), TWO)

    assert parts(answer, TWO)[4] == {"vector": 1.0}
    assert parts(answer, TWO)[2] == {}


def test_what_lies_on_the_unit_scale_is_added_as_it_is() -> None:
    table = candidates({"trigger": {1: 0.5, 2: 0.25}, "bm25": {3: 1.0}}, scales={"trigger": Scale.UNIT})

    assert parts(z_score(weights={"trigger": 2.0}).fuse(query(), table), table) == {
        1: {"trigger": 1.0},
        2: {"trigger": 0.5},
        3: {},
    }


def test_the_searches_of_several_variants_share_the_weight_of_their_channel() -> None:
    table = candidates({"bm25": {1: 3.0, 2: 1.0}, "bm25~1": {1: 3.0, 2: 1.0}})

    assert parts(z_score().fuse(query(), table), table) == {
        1: {"bm25": 0.5, "bm25~1": 0.5},
        2: {"bm25": -0.5, "bm25~1": -0.5},
    }


@pytest.mark.requirement("F4")
def test_z_scores_may_be_mapped_to_the_unit_interval() -> None:
    table = candidates({"bm25": {1: 3.0, 2: 1.0}})

    assert scores(z_score(normalise="min_max").fuse(query(), table), table, Scale.UNIT) == {1: 1.0, 2: 0.0}
    assert scores(z_score(normalise="logistic").fuse(query(), table), table, Scale.UNIT) == {
        1: round(1 / (1 + exp(-1)), 6),
        2: round(1 / (1 + exp(1)), 6),
    }
    assert ZScore.scale(ZScoreParams()) is Scale.Z_SCORE
    assert ZScore.scale(ZScoreParams(normalise="logistic")) is Scale.UNIT


@pytest.mark.requirement("F3", "P6")
def test_z_scores_may_be_weighed_by_intent() -> None:
    table = candidates({"vector": {1: 3.0, 2: 1.0}, "bm25": {1: 3.0, 2: 1.0}}, ages={1: 0, 2: 0})

    answer = z_score(weights="by_intent").fuse(query("fix_bug", 0.5), table)

    assert parts(answer, table)[1] == {"vector": 0.4, "bm25": 0.4, "recency": 0.02}
    assert ZScore.weighs_intent(ZScoreParams(weights="by_intent")) == "channels"


@given(tables())
def test_z_scores_do_not_depend_on_the_unit_of_a_channel(table: Candidates) -> None:
    plain = z_score().fuse(query(), table).parts
    scaled = z_score().fuse(query(), Candidates(**{**_fields(table), "raw": table.raw * 8.0})).parts

    assert np.allclose(plain, scaled)


def _fields(table: Candidates) -> dict[str, Any]:
    return {name: getattr(table, name) for name in Candidates.__slots__}


@pytest.mark.requirement("F2.pair")
def test_the_pair_form_halves_what_one_source_alone_found() -> None:
    table = candidates({"vector": {1: 0.9, 2: 0.5, 3: 0.1}, "fts5": {2: 6.0, 4: 2.0}})

    answer = rsf(form="pair").fuse(query(), table)

    # vector: 1, .5, 0; fts5: 1, 0.
    assert scores(answer, table, Scale.UNIT) == {2: 0.75, 1: 0.5, 3: 0.0, 4: 0.0}
    assert parts(answer, table)[2] == {"vector": 0.25, "fts5": 0.5}


@pytest.mark.requirement("F2")
def test_the_pair_form_averages_over_query_variants() -> None:
    table = candidates({"vector": {1: 0.9, 2: 0.5}, "fts5": {1: 6.0}, "vector~1": {1: 0.8, 2: 0.4}, "fts5~1": {2: 3.0}})

    answer = rsf(form="pair").fuse(query(), table)

    # Variant 0: 1 gets (1 + 1)/2, 2 gets 0. Variant 1: 1 gets 1/2, 2 gets (0 + 1)/2.
    assert scores(answer, table, Scale.UNIT) == {1: 0.75, 2: 0.25}


@pytest.mark.requirement("F2.multi")
def test_the_multi_form_scales_by_the_share_of_lists() -> None:
    table = candidates({"vector": {1: 0.9, 2: 0.1}, "fts5": {1: 6.0, 2: 2.0}, "graph": {1: 3.0, 3: 3.0}})

    answer = rsf().fuse(query(), table)

    # 1: mean 1 in three of three lists; 3: 1 · 1/3 (all equal count as 1); 2: mean 0.
    assert scores(answer, table, Scale.UNIT) == {1: 1.0, 3: round(1 / 3, 6), 2: 0.0}


@pytest.mark.requirement("F2")
@pytest.mark.parametrize(
    ("lists", "score"),
    [
        # memory 1 has .5 in each of its lists, whose other scores span 0 to 1: mean .5 · present / total
        (("a",), 0.166667),  # .5 · 1/3
        (("a", "b"), 0.333333),  # .5 · 2/3
        (("a", "b", "c"), 0.5),  # .5 · 3/3
    ],
)
def test_the_multi_form_at_one_two_and_three_of_three_lists(lists: tuple[str, ...], score: float) -> None:
    table = candidates({n: {8: 1.0, 9: 0.0} | ({1: 0.5} if n in lists else {}) for n in ("a", "b", "c")})

    assert scores(rsf(form="multi").fuse(query(), table), table, Scale.UNIT)[1] == score


@pytest.mark.requirement("F2.variants")
def test_each_further_variant_adds_a_tenth() -> None:
    # one list per variant, in each of them memory 1 scores half: mean .5, and .1 for each variant beyond the first
    half = {8: 1.0, 1: 0.5, 9: 0.0}
    tables_of = (candidates({"a" if v == 0 else f"a~{v}": half for v in range(count)}) for count in (1, 2, 3))

    bonus = [scores(rsf(form="cross_variant").fuse(query(), table), table, Scale.UNIT)[1] for table in tables_of]

    assert bonus == [0.5, 0.6, 0.7]


@pytest.mark.requirement("F2")
def test_the_cross_variant_form_averages_over_variants_and_rewards_convergence() -> None:
    table = candidates({"vector": {1: 0.9, 2: 0.1}, "vector~1": {1: 0.4, 3: 0.8}, "fts5~1": {3: 5.0}})

    answer = rsf(form="cross_variant").fuse(query(), table)

    # Variant 0: 1 gets 1, 2 gets 0. Variant 1, two lists: 1 gets 0/2, 3 gets (1 + 1)/2. 1 is in both: 1/2 + .1.
    assert scores(answer, table, Scale.UNIT) == {3: 1.0, 1: 0.6, 2: 0.0}
    assert parts(answer, table)[1] == {"vector": 0.5, "variants": 0.1}


@pytest.mark.requirement("F2")
def test_what_exceeds_one_is_taken_back_visibly() -> None:
    table = candidates({"vector": {1: 0.9, 2: 0.1}, "vector~1": {1: 0.8, 2: 0.2}})

    answer = rsf(form="cross_variant").fuse(query(), table)

    assert parts(answer, table)[1] == {"vector": 0.5, "vector~1": 0.5, "variants": 0.1, "clamp": -0.1}
    assert scores(answer, table, Scale.UNIT) == {1: 1.0, 2: 0.1}


@pytest.mark.requirement("F2", "P7")
def test_the_pair_form_needs_two_channels() -> None:
    three = PipelineContext(("a", "b", "c"), (Scale.BM25,) * 3, ("a", "b", "c", "rsf"), ("a", "b", "c", "rsf"))
    two = PipelineContext(("a", "b"), (Scale.BM25,) * 2, ("a", "b", "rsf"), ("a", "b", "rsf"))

    assert [path for path, _ in Rsf.check(RsfParams(form="pair"), three)] == [("form",)]
    assert list(Rsf.check(RsfParams(form="pair"), two)) == list(Rsf.check(RsfParams(), three)) == []


@pytest.mark.requirement("F2.unit")
@given(tables())
def test_relative_scores_lie_in_the_unit_interval_in_every_form(table: Candidates) -> None:
    for form in ("pair", "multi", "cross_variant"):
        total = rsf(form=form).fuse(query(), table).parts.sum(axis=1)
        assert np.all((total >= -1e-12) & (total <= 1 + 1e-12))


def test_a_single_channel_is_passed_through() -> None:
    table = candidates({"bm25": {1: 7.5, 2: -1.0}})

    answer = Single(SingleParams(scale="bm25")).fuse(query(), table)

    assert scores(answer, table, Scale.BM25) == {1: 7.5, 2: -1.0}
    assert Single.scale(SingleParams(scale="cosine")) is Scale.COSINE


def test_of_several_variants_the_best_score_counts() -> None:
    table = candidates({"bm25": {1: 2.0, 2: 1.0}, "bm25~1": {1: 5.0, 3: 3.0}})

    answer = Single(SingleParams(scale="bm25")).fuse(query(), table)

    assert parts(answer, table) == {1: {"bm25~1": 5.0}, 2: {"bm25": 1.0}, 3: {"bm25~1": 3.0}}


@pytest.mark.requirement("F4")
def test_a_single_candidate_is_normalised_to_one() -> None:
    table = candidates({"bm25": {1: 7.5}})

    answer = Single(SingleParams(scale="bm25", normalise="min_max")).fuse(query(), table)

    assert scores(answer, table, Scale.UNIT) == {1: 1.0}
    assert Single.scale(SingleParams(scale="bm25", normalise="min_max")) is Scale.UNIT


@pytest.mark.requirement("P7")
def test_passing_through_needs_one_channel_of_the_declared_scale() -> None:
    two = PipelineContext(("a", "b"), (Scale.BM25, Scale.BM25), ("a", "b", "single"), ("a", "b", "single"))
    cosine = PipelineContext(("a",), (Scale.COSINE,), ("a", "single"), ("a", "single"))

    assert [path for path, _ in Single.check(SingleParams(scale="bm25"), two)] == [()]
    assert list(Single.check(SingleParams(scale="bm25"), cosine)) == [
        (("scale",), "'a' scores on the scale cosine, not bm25"),
    ]
    assert list(Single.check(SingleParams(scale="cosine"), cosine)) == []


# Standardised over all candidates: one of four has √3 and the others −1/√3, whatever its score.
@pytest.mark.requirement("F3")
@pytest.mark.parametrize("score", [1e-6, 8.0, 1e6])
def test_the_only_hit_of_a_search_that_told_everything_stands_far_above_the_rest(score: float) -> None:
    table = candidates({"bm25": {3: score}}, rest={"bm25": 0.0}, others=(1, 2, 4))

    answer = parts(z_score().fuse(query(), table), table)

    assert answer == {3: {"bm25": 1.732051}, **{i: {"bm25": -0.57735} for i in (1, 2, 4)}}


@pytest.mark.requirement("F3")
def test_equal_hits_of_a_search_that_told_everything_stand_above_what_it_left_out() -> None:
    table = candidates({"bm25": {1: 5.0, 2: 5.0}}, rest={"bm25": 0.0}, others=(3, 4))

    assert parts(z_score().fuse(query(), table), table) == {
        **{i: {"bm25": 1.0} for i in (1, 2)},
        **{i: {"bm25": -1.0} for i in (3, 4)},
    }


@pytest.mark.parametrize("rest", [0.0, float("nan")])
def test_a_search_without_hits_says_nothing(rest: float) -> None:
    table = candidates({"bm25": {}, "vector": {1: 0.5, 2: 0.3}}, rest={"bm25": rest})

    assert parts(z_score().fuse(query(), table), table) == {1: {"vector": 1.0}, 2: {"vector": -1.0}}


@pytest.mark.parametrize("missing", ["lowest", "mean"])
def test_equal_hits_of_a_search_that_was_cut_off_say_nothing(missing: str) -> None:
    table = candidates({"bm25": {1: 5.0, 2: 5.0}}, others=(3,))

    assert parts(z_score(missing=missing).fuse(query(), table), table) == {1: {}, 2: {}, 3: {}}


# -0.5, 0.1 and the floor -0.8 twice: mean -0.5, deviation √((0 + .36 + .09 + .09)/4) = √.135.
def test_what_lies_below_a_negative_floor_is_standardised_with_the_floor() -> None:
    table = candidates({"vector": {1: 0.1, 2: -0.5}}, rest={"vector": -0.8}, others=(3, 4))

    answer = parts(z_score().fuse(query(), table), table)

    assert answer[1] == {"vector": round(0.6 / sqrt(0.135), 6)}
    assert answer[2] == {}
    assert answer[3] == answer[4] == {"vector": round(-0.3 / sqrt(0.135), 6)}


@pytest.mark.requirement("F2")
def test_the_last_hit_of_a_search_that_told_everything_keeps_a_share() -> None:
    table = candidates({"bm25": {1: 8.0, 2: 2.0}, "vector": {3: 0.9, 1: 0.5}}, rest={"bm25": 0.0})

    # bm25: 1, 1/4, and 0 for what it left out; vector: 1, 0.
    assert scores(rsf(form="multi").fuse(query(), table), table, Scale.UNIT) == {1: 0.5, 3: 0.5, 2: 0.125}


@pytest.mark.requirement("F2", "F4")
def test_a_search_without_hits_adds_no_relative_score() -> None:
    table = candidates({"bm25": {}, "vector": {1: 0.5}}, rest={"bm25": 0.0, "vector": 0.0})

    assert scores(rsf(form="multi").fuse(query(), table), table, Scale.UNIT) == {1: 0.5}
