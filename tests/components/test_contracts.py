"""What every registered component must keep to, whatever it does. A new component is covered without a new test."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from components.fake_store import DAY, Edge, FakeStore, Memory, words

from config.exchange import FolderDescription
from engine.assembly import registry
from pipeline.apply import Search, fused, reranked, signalled, union
from pipeline.checks import check_hits, check_notes, check_plan
from pipeline.contracts import Params, Role
from pipeline.model import Filter, Hits, Plan, Query
from pipeline.registry import Registered
from pipeline.scales import Scale
from pipeline.sealing import seal

NOW = 400 * DAY
MANIFEST = tomllib.loads((Path(__file__).parents[1] / "requirements.toml").read_text(encoding="utf-8"))

REQUIRED = {"single": {"scale": "bm25"}}
"""Parameters without a default."""

VARIANTS: dict[str, tuple[dict[str, object], ...]] = {
    "vector": ({"level": "chunk"}, {"min_similarity": 0.5}),
    "bm25": ({"passage": 1.0}, {"passage": 1.0, "level": "chunk"}, {"passage": 1.0, "passage_title": 0.0}),
    "graph": ({"hops": 2},),
    "rrf": ({"normalise": "min_max"}, {"weights": "by_intent"}),
    "rsf": ({"form": "pair"}, {"form": "cross_variant"}),
    "z_score": ({"normalise": "min_max"}, {"normalise": "logistic"}, {"weights": "by_intent"}, {"missing": "mean"}),
    "single": ({"scale": "bm25", "normalise": "min_max"},),
}
"""Further parameters under which a component must keep to its contract as well."""


def _of(*roles: Role) -> list[object]:
    return [
        pytest.param(entry, entry.params.model_validate(REQUIRED.get(entry.name, {}) | extra), id=_name(entry, extra))
        for entry in registry()
        if entry.role in roles or not roles
        for extra in ({}, *VARIANTS.get(entry.name, ()))
    ]


def _name(entry: Registered, extra: dict[str, object]) -> str:
    return "-".join((entry.name, *(str(value) for value in extra.values())))


def sample(holes: int = 0) -> FakeStore:
    numbers = {
        "created_at": NOW - 30 * DAY, "updated_at": NOW - 20 * DAY, "access_count": 3.0, "stability": 4.0,
        "difficulty": 5.0, "confidence": 0.6, "validation_count": 2.0, "importance_weight": 0.5, "interference": 1.0,
        "characters": 120.0,
    }  # fmt: skip
    return FakeStore(
        Memory(1, "Rank fusion", ("fusion of ranked lists", "why fusion by rank"), ("rank fusion",), folder="search",
               document_type="spec", numbers=numbers),
        Memory(2, "House rules", ("never push untested fusion",), tier="constitutional", folder="rules",
               numbers=numbers),
        Memory(3, "Old fusion", ("fusion as it was",), tier="deprecated", folder="search", numbers=numbers),
        Memory(4, "Decay", ("memories decay", "until a review"), folder="search/deep", tier="critical"),
        Memory(5, "Gone", ("fusion that expired",), folder="search", numbers={**numbers, "expires_at": NOW - DAY}),
        Memory(6, "Fusion weights", ("weights of ranked lists",), learned=("lists",), folder="search", numbers=numbers,
               context_type="decision"),
        edges=(Edge(1, 4, "caused", 0.8), Edge(6, 1, "supersedes"), Edge(2, 4, "supports", 0.5), Edge(3, 4, "caused")),
        folders=(FolderDescription("search", "Ranked retrieval.", frozenset({"fusion", "lists"})),
                 FolderDescription("rules", "What holds always.", frozenset({"push"}))),
        attended={"s": {1: 0.9, 4: 0.2}},
        delivered={"s": {6}},
        relevance={"weights of ranked lists": 0.9},
        holes=holes,
    )  # fmt: skip


EMPTY = FakeStore()


def query(text: str = "rank fusion of lists", **changes: object) -> Query:
    asked = Query(text, now=NOW, terms=words(text), session="s", plan=Plan(variants=(text,)))
    return replace(asked, **changes)


QUERIES = (
    query(),
    query("unknown words only"),
    query(""),
    query(wanted=Filter(folder="search")),
    query(wanted=Filter(tier="critical")),
    query("why did we choose rank fusion, actually?", mode="deep"),
    query(token_usage=0.9),
)


@pytest.mark.parametrize(("entry", "params"), _of())
def test_a_component_says_what_it_is(entry: Registered, params: Params) -> None:
    assert entry.name == entry.origin.rpartition(".")[2]
    assert entry.summary.endswith(".")
    assert set(entry.about.features) <= MANIFEST.keys()
    undescribed = [name for name, field in entry.params.model_fields.items() if not field.description]
    assert undescribed == []


@pytest.mark.parametrize(("entry", "params"), _of())
def test_parameters_are_closed_and_tunable_ranges_are_accepted(entry: Registered, params: Params) -> None:
    assert params.model_config["extra"] == "forbid"
    assert params.model_config["frozen"]
    for name, field in entry.params.model_fields.items():
        extra = field.json_schema_extra
        for bound in extra.get("tunable", ()) if isinstance(extra, dict) else ():
            entry.params.model_validate({**REQUIRED.get(entry.name, {}), (field.alias or name): bound})


@pytest.mark.parametrize(("entry", "params"), _of(Role.UNDERSTANDER))
@pytest.mark.parametrize("asked", QUERIES)
@pytest.mark.parametrize("store", [sample(), EMPTY], ids=["sample", "empty"])
def test_understanding_refines_the_plan_and_repeats_itself(
    entry: Registered, params: Params, asked: Query, store: FakeStore
) -> None:
    before = Plan(variants=(asked.text,), complexity="moderate", reasons=("first",))
    component = entry.component(params)

    plan = component.understand(asked, before, store)

    assert check_plan(plan, asked, entry.name) == component.understand(asked, before, store)
    assert plan.reasons[:1] == ("first",)


@pytest.mark.requirement("C1", "C2", "C3", "C4", "C5", "C6", "C7")
@pytest.mark.parametrize(("entry", "params"), _of(Role.CHANNEL))
@pytest.mark.parametrize("asked", QUERIES)
@pytest.mark.parametrize("store", [sample(), sample(holes=3), EMPTY], ids=["sample", "holes", "empty"])
def test_a_channel_returns_only_what_the_filter_admits_on_its_scale(
    entry: Registered, params: Params, asked: Query, store: FakeStore
) -> None:
    component = entry.component(params)

    hits = component.search(asked, 50, store)

    if isinstance(hits, Hits):
        scope = store.attributes.scope(asked.wanted, asked.now)
        assert scope.admits(hits.ids).all()
        assert hits.scale is entry.about.gives
        assert hits.level == getattr(params, "level", "memory")
        if hits.level == "memory":
            assert np.array_equal(store.attributes.parents(hits.ids), hits.ids)
        if hits.passages is not None:
            told = hits.passages >= 0
            assert np.array_equal(
                store.attributes.parents(hits.passages[told]), store.attributes.parents(hits.ids[told])
            )


@pytest.mark.parametrize(("entry", "params"), _of(Role.CHANNEL))
@pytest.mark.parametrize("asked", QUERIES)
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_fewer_hits_are_the_first_of_more_hits(entry: Registered, params: Params, asked: Query, limit: int) -> None:
    store, component = sample(), entry.component(params)

    hits = component.search(asked, limit, store)
    more = component.search(asked, 50, store)

    if isinstance(hits, Hits):
        assert check_hits(hits, limit, entry.name) is hits
        assert np.array_equal(hits.ids, more.ids[:limit])
        assert np.array_equal(hits.scores, more.scores[:limit])


@pytest.mark.parametrize(("entry", "params"), _of(Role.CHANNEL))
def test_holes_in_the_indexes_change_no_hit(entry: Registered, params: Params) -> None:
    component = entry.component(params)

    whole, holed = component.search(query(), 50, sample()), component.search(query(), 50, sample(holes=3))

    assert np.array_equal(whole.ids, holed.ids)
    assert np.array_equal(whole.scores, holed.scores)


def searches(variants: int = 1) -> list[Search]:
    found = [
        Search("bm25", 0, Hits(np.array([6, 1, 4]), np.array([7.5, 3.0, 0.5]), Scale.BM25)),
        Search("vector", 0, Hits(np.array([1, 2]), np.array([0.9, 0.1]), Scale.COSINE)),
        Search("bm25", 1, Hits(np.array([4, 6]), np.array([2.0, 1.0]), Scale.BM25)),
        Search("vector", 1, Hits(np.array([], np.int64), np.array([]), Scale.COSINE)),
    ]
    return found[: 2 * variants]


@pytest.mark.parametrize(("entry", "params"), _of(Role.FUSER))
@pytest.mark.parametrize("variants", [0, 1, 2])
def test_a_fuser_names_the_parts_of_every_score(entry: Registered, params: Params, variants: int) -> None:
    candidates = union(searches(variants), sample().attributes)
    scale = entry.component.scale(params) if hasattr(entry.component, "scale") else entry.about.gives

    answer = entry.component(params).fuse(query(), candidates)
    pool = fused(entry.name, scale, candidates, answer)

    assert len(set(answer.names)) == len(answer.names)
    assert set(pool.ids.tolist()) == set(candidates.ids.tolist())
    if scale is Scale.UNIT:
        total = answer.parts.sum(axis=1)
        assert np.all((total >= -1e-9) & (total <= 1 + 1e-9))


@pytest.mark.parametrize(("entry", "params"), _of(Role.FUSER))
def test_the_score_of_a_candidate_does_not_depend_on_its_row(entry: Registered, params: Params) -> None:
    candidates = union(searches(2), sample().attributes)
    rows = np.arange(len(candidates))[::-1]

    plain = entry.component(params).fuse(query(), candidates)
    turned = entry.component(params).fuse(query(), candidates.take(rows))

    assert np.allclose(plain.parts[rows], turned.parts)


def pool_of(size: int) -> object:
    fuse = registry().find("rrf")
    assert fuse is not None
    params = fuse.params.model_validate({"normalise": "min_max"})
    candidates = union(searches(), sample().attributes)
    candidates = candidates.take(np.arange(size))
    return fused("rrf", Scale.UNIT, candidates, fuse.component(params).fuse(query(), candidates))


@pytest.mark.parametrize(("entry", "params"), _of(Role.SIGNAL))
@pytest.mark.parametrize("size", [0, 1, 4])
def test_a_signal_answers_one_finite_number_per_row(entry: Registered, params: Params, size: int) -> None:
    pool, component = pool_of(size), entry.component(params)

    column = component.evidence(query(), pool, sample())

    if isinstance(column, np.ndarray):
        signalled(entry.name, component.combine, params, pool, column, np.zeros(size))
        assert np.array_equal(column, component.evidence(query(), pool, sample()))


@pytest.mark.parametrize(("entry", "params"), _of(Role.RERANKER))
@pytest.mark.parametrize("size", [0, 1, 4])
def test_a_reranker_invents_no_memory_and_repeats_itself(entry: Registered, params: Params, size: int) -> None:
    pool, component, store = pool_of(size), entry.component(params), sample()

    answer = component.rerank(query(), pool, store)

    if hasattr(answer, "__slots__") and not hasattr(answer, "reason"):
        after = reranked(entry.name, Scale.BOOST, pool, answer)
        again = reranked(entry.name, Scale.BOOST, pool, component.rerank(query(), pool, store))
        assert set(after.candidates.parents.tolist()) <= set(pool.candidates.parents.tolist())
        assert np.array_equal(after.ids, again.ids)
        assert np.array_equal(after.score, again.score)


@pytest.mark.parametrize(("entry", "params"), _of(Role.ANNOTATOR))
@pytest.mark.parametrize("size", [0, 1, 4])
def test_an_annotator_speaks_only_of_ranked_rows(entry: Registered, params: Params, size: int) -> None:
    pool, component, store = pool_of(size), entry.component(params), sample()

    notes = component.annotate(query(), seal(pool), store)

    assert check_notes(notes, pool, entry.name) is notes
