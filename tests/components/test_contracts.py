"""What every registered component must keep to, whatever it does. A new component is covered without a new test.

A component that always answers `Unavailable`, or nothing, keeps to no contract here: the store of these tests has every
part, so that each must answer, and some question or pool of the fixed ones must make a difference to each.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import numpy as np
import pytest
from components.fake_store import DAY, Edge, FakeStore, Memory, words
from components.pools import pool_of

from speckit_memory import channels, signals, stages
from speckit_memory.engine.assembly import COMPONENTS, registry
from speckit_memory.pipeline.apply import Search, fused, reranked, signalled, union
from speckit_memory.pipeline.checks import check_hits, check_notes, check_plan
from speckit_memory.pipeline.contracts import About, Params, Role
from speckit_memory.pipeline.model import Filter, Fused, Grouped, Hits, Notes, Plan, Pool, Query, Rescored, Selected
from speckit_memory.pipeline.ports import FolderDescription, Unavailable
from speckit_memory.pipeline.registry import Registered
from speckit_memory.pipeline.scales import Scale
from speckit_memory.pipeline.sealing import seal

NOW = 400 * DAY
MANIFEST = tomllib.loads((Path(__file__).parents[1] / "requirements.toml").read_text(encoding="utf-8"))

REQUIRED = {"single": {"scale": "bm25"}}
"""Parameters without a default."""

VARIANTS: dict[str, tuple[dict[str, object], ...]] = {
    "vector": ({"level": "chunk"}, {"min_similarity": 0.5}, {"context": 0.2}),
    "bm25": (
        {"passage": 1.0},
        {"passage": 1.0, "level": "chunk"},
        {"passage": 1.0, "passage_title": 0.0},
        {"context": 0.2},
        {"max_terms": 1},
        {"feedback": {"model": "rm3"}},
        {"passage": 1.0, "feedback": {"model": "bo1"}},
    ),
    "graph": ({"hops": 2},),
    "rrf": ({"normalise": "min_max"}, {"weights": "by_intent"}),
    "rsf": ({"form": "pair"}, {"form": "cross_variant"}),
    "z_score": ({"normalise": "min_max"}, {"normalise": "logistic"}, {"weights": "by_intent"}, {"missing": "mean"}),
    "single": ({"scale": "bm25", "normalise": "min_max"},),
    "temporal": ({"classification": "stability"}, {"classification": "elapsed"}),
    "composite": ({"model": "six_factor"}, {"model": "by_intent"}, {"classification_decay": True}),
    "folder_score": ({"form": "damped_sum"},),
    "causal": ({"hops": 1},),
    "collapse": ({"aggregate": "max"}, {"aggregate": "mean_top3"}),
    "mmr": ({"lambda": "by_intent"},),
    "evidence_gap": ({"form": "coverage"},),
    "duplicates": ({"action": "mark"},),
    "session_dedup": ({"action": "mark"},),
    "superseded": ({"action": "hide"},),
    "token_budget": ({"budget": "by_complexity"}, {"sent": "content"}),
    "state_filter": ({"min_state": "WARM"}, {"limits": {"WARM": 1}}),
}
"""Further parameters under which a component must keep to its contract as well."""

NEEDS = {
    "vector": "vectors", "embedding_expansion": "vectors", "coactivation": "vectors", "mmr": "vectors",
    "regularise": "vectors", "maxsim": "a model of tokens", "cross_encoder": "a cross-encoder",
}  # fmt: skip
"""The part without which a component is unavailable; no other component may ever be."""


def _of(*roles: Role) -> list[object]:
    return [
        pytest.param(entry, entry.params.model_validate(REQUIRED.get(entry.name, {}) | extra), id=_name(entry, extra))
        for entry in registry()
        if entry.role in roles or not roles
        for extra in ({}, *VARIANTS.get(entry.name, ()))
    ]


def _name(entry: Registered, extra: dict[str, object]) -> str:
    return "-".join((entry.name, *(str(value) for value in extra.values())))


NUMBERS = {
    "created_at": NOW - 30 * DAY, "updated_at": NOW - 20 * DAY, "access_count": 3.0, "stability": 4.0,
    "difficulty": 5.0, "confidence": 0.6, "validation_count": 2.0, "importance_weight": 0.5, "interference": 1.0,
    "characters": 120.0,
}  # fmt: skip
NEW = {**NUMBERS, "created_at": NOW - DAY / 24, "updated_at": NOW - DAY / 24}
STEPS = "<!-- ANCHOR:steps -->\nmeasure again\n<!-- /ANCHOR:steps -->"


def sample(holes: int = 0) -> FakeStore:
    """A store with every part, in which each component has something to do."""
    memories = [
        Memory(1, "Rank fusion", ("fusion of ranked lists", "why fusion by rank"), ("rank fusion",), folder="search",
               document_type="spec", numbers=NUMBERS),
        Memory(2, "House rules", ("never push untested fusion",), tier="constitutional", folder="rules",
               numbers=NUMBERS),
        Memory(3, "Old fusion", ("fusion as it was",), tier="deprecated", folder="search", numbers=NUMBERS),
        Memory(4, "Decay", ("memories decay", "until a review"), folder="search/deep", tier="critical"),
        Memory(5, "Gone", ("fusion that expired",), folder="search", numbers={**NUMBERS, "expires_at": NOW - DAY}),
        Memory(6, "Fusion weights", ("weights of ranked lists",), learned=("lists",), folder="search", numbers=NEW,
               context_type="decision", labels={"content_hash": "twin"}),
        Memory(7, "Fusion", (f"weights of ranked lists again {STEPS}",), folder="search", numbers=NEW,
               labels={"content_hash": "twin"}),
        Memory(8, "Aggregation", ("computeMPAB aggregates",), folder="notes", numbers=NUMBERS),
        *(Memory(i, f"Note {i}", (f"note {i} " + "text " * i,), folder="notes", numbers=NUMBERS)
          for i in range(10, 20)),
    ]  # fmt: skip
    return FakeStore(
        *memories,
        edges=(Edge(1, 4, "caused", 0.8), Edge(6, 1, "supersedes"), Edge(2, 4, "supports", 0.5), Edge(3, 4, "caused")),
        folders=(FolderDescription("search", "Ranked retrieval.", frozenset({"fusion", "lists"})),
                 FolderDescription("rules", "What holds always.", frozenset({"push"}))),
        attended={"s": {1: 0.9, 4: 0.2}},
        delivered={"s": {6}},
        relevance={text: 1.0 / (1 + len(text)) for memory in memories for text in memory.chunks},
        holes=holes,
    )  # fmt: skip


SAMPLE, HOLED, ENCODED = sample(), sample(holes=3), sample()
ENCODED.vectors.static = False  # a sentence encoder made them
EMPTY = FakeStore()
LACKING = FakeStore(Memory(1, "fusion", ("",)), Memory(2, "lists", ("",)), no_embedder="there is no model")
"""Neither texts, nor vectors, nor a model."""


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
    query("why did we fix it, actually?", mode="deep"),
    query(token_usage=0.9),
    query(anchors=("steps",)),
    query("computeMPAB"),
    query("fusoin"),
    query(plan=Plan(variants=("rank fusion of lists",), intent="find_decision", intent_confidence=0.9)),
)

SCORES: dict[str, dict[int, float]] = {
    "none": {},
    "one": {1: 0.5},
    "few": {1: 0.9, 2: 0.8, 6: 0.8, 7: 0.1},
    "passages": {101: 0.5, 102: 0.4, 401: 0.6, 6: 0.3},
    "equal": {1: 0.5, 4: 0.5, 6: 0.5, 7: 0.5},
    "many": {1: 0.95, 6: 0.9, 7: 0.85, **{i: 0.8 - i / 50 for i in range(10, 20)}, 4: 0.35, 2: 0.05},
}
"""Pools by the ids of their rows."""


def pool(name: str, entry: Registered) -> Pool:
    """The pool of that name on a scale that the component accepts; 4 is the only row that the graph found."""
    scores = SCORES[name]
    scale = entry.about.needs[0] if entry.about.needs else Scale.UNIT
    best_first = sorted(scores, key=lambda i: -scores[i])
    found = {"vector": [i for i in best_first if i != 4], "graph": [i for i in best_first if i == 4]}
    raw = {channel: {i: scores[i] for i in ids} for channel, ids in found.items()}
    return pool_of(SAMPLE, scores, scale=scale, found=found, raw=raw)


def test_each_file_holds_at_most_one_component_and_every_component_is_registered() -> None:
    modules = [
        import_module(found.name)
        for package in (channels, signals, stages)
        for found in walk_packages(package.__path__, f"{package.__name__}.")
    ]
    components = [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and isinstance(vars(kind).get("about"), About)
    ]

    assert {kind.__qualname__ for kind in components} == {kind.__qualname__ for _, kind in COMPONENTS}
    assert len({kind.__module__ for kind in components}) == len(components)


@pytest.mark.parametrize(("entry", "params"), _of())
def test_a_component_says_what_it_is(entry: Registered, params: Params) -> None:
    assert entry.name == entry.origin.rpartition(".")[2]
    assert entry.summary.endswith(".")
    assert entry.about.features
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


def understood(entry: Registered, params: Params, asked: Query, store: FakeStore) -> tuple[Plan, Any]:
    """The plan before, and what the step answers."""
    before = Plan(variants=(asked.text,), complexity="moderate", reasons=("first",))
    return before, entry.component(params).understand(asked, before, store)


@pytest.mark.parametrize(("entry", "params"), _of(Role.UNDERSTANDER))
def test_understanding_refines_the_plan_of_some_question_and_repeats_itself(entry: Registered, params: Params) -> None:
    changed = False
    for asked in QUERIES:
        before, plan = understood(entry, params, asked, SAMPLE)
        assert isinstance(plan, Plan)
        assert check_plan(plan, asked, entry.name) == understood(entry, params, asked, SAMPLE)[1]
        assert plan.reasons[:1] == before.reasons
        changed |= plan != before

    assert changed


@pytest.mark.parametrize(("entry", "params"), _of(Role.RECOVERER))
def test_recovery_offers_another_plan_each_time_until_it_gives_up(entry: Registered, params: Params) -> None:
    for asked in QUERIES:
        plan, offered = asked.plan, []
        for attempt in range(10):
            plan = replace(plan, attempt=attempt)
            after = entry.component(params).recover(asked, plan, SAMPLE)
            assert isinstance(after, Plan)
            assert check_plan(after, asked, entry.name) == after
            if after == plan:
                break
            offered.append(after)
            plan = after

        assert 0 < len(offered) < 10
        assert all(one != other for place, one in enumerate(offered) for other in offered[:place])


@pytest.mark.requirement("C2", "C3", "C5", "C6", "C7", "C1.unit", "C4.ids")
@pytest.mark.parametrize(("entry", "params"), _of(Role.CHANNEL))
def test_a_channel_finds_something_and_only_what_the_filter_admits_on_its_scale(
    entry: Registered, params: Params
) -> None:
    component, found = entry.component(params), 0.0
    for asked in QUERIES:
        hits = component.search(asked, 50, SAMPLE)
        assert isinstance(hits, Hits)
        wanted = asked.wanted.of_the_tier if entry.about.unconditional else asked.wanted
        assert SAMPLE.attributes.scope(wanted, asked.now).admits(hits.ids).all()
        assert hits.scale is entry.about.gives
        assert hits.level == getattr(params, "level", "memory")
        parents = SAMPLE.attributes.parents
        if hits.level == "memory":
            assert np.array_equal(parents(hits.ids), hits.ids)
        if hits.passages is not None:
            told = hits.passages >= 0
            assert np.array_equal(parents(hits.passages[told]), parents(hits.ids[told]))
        found = max(found, hits.scores.max(initial=0.0))

    assert found > 0.0


@pytest.mark.parametrize(("entry", "params"), _of(Role.CHANNEL))
def test_fewer_hits_are_the_first_of_more_hits(entry: Registered, params: Params) -> None:
    component = entry.component(params)
    for asked in QUERIES:
        more = component.search(asked, 50, SAMPLE)
        for limit in (1, 2, 3):
            hits = component.search(asked, limit, SAMPLE)
            assert isinstance(hits, Hits)
            assert _plain(check_hits(hits, limit, entry.name)) == _plain(hits)
            assert len(hits) == min(limit, len(more))
            assert np.array_equal(hits.ids, more.ids[:limit])
            assert np.array_equal(hits.scores, more.scores[:limit])


def _plain(hits: Hits) -> tuple[object, ...]:
    passages = None if hits.passages is None else hits.passages.tolist()
    return hits.ids.tolist(), hits.scores.tolist(), hits.scale, hits.level, passages, repr(hits.rest)


@pytest.mark.parametrize(("entry", "params"), _of(Role.CHANNEL))
def test_holes_in_the_indexes_change_no_hit(entry: Registered, params: Params) -> None:
    for asked in QUERIES:
        whole, holed = (entry.component(params).search(asked, 50, store) for store in (SAMPLE, HOLED))
        assert isinstance(holed, Hits)
        assert np.array_equal(whole.ids, holed.ids)
        assert np.array_equal(whole.scores, holed.scores)


@pytest.mark.requirement("P9")
@pytest.mark.parametrize(("entry", "params"), _of(Role.CHANNEL, Role.UNDERSTANDER, Role.RECOVERER))
@pytest.mark.parametrize("store", [EMPTY, LACKING], ids=["empty", "lacking"])
def test_what_a_store_lacks_is_said_and_never_guessed(entry: Registered, params: Params, store: FakeStore) -> None:
    component = entry.component(params)
    for asked in QUERIES:
        match entry.role:
            case Role.CHANNEL:
                answer = component.search(asked, 50, store)
            case Role.UNDERSTANDER:
                _, answer = understood(entry, params, asked, store)
            case _:
                answer = component.recover(asked, asked.plan, store)
        _expected(entry, answer, Hits if entry.role is Role.CHANNEL else Plan)


def _expected(entry: Registered, answer: object, *accepted: type) -> None:
    """The answer is of the right type, or a reason from a component that needs a part which may be missing."""
    if entry.name in NEEDS and isinstance(answer, Unavailable):
        assert answer.reason
    else:
        assert isinstance(answer, accepted)


def searches(variants: int = 1) -> list[Search]:
    found = [
        Search("bm25", 0, Hits(np.array([6, 1, 4]), np.array([7.5, 3.0, 0.5]), Scale.BM25), 50),
        Search("vector", 0, Hits(np.array([1, 2]), np.array([0.9, 0.1]), Scale.COSINE), 2),
        Search("bm25", 1, Hits(np.array([4, 6]), np.array([2.0, 1.0]), Scale.BM25), 50),
        Search("vector", 1, Hits(np.array([], np.int64), np.array([]), Scale.COSINE), 2),
    ]
    return found[: 2 * variants]


@pytest.mark.parametrize(("entry", "params"), _of(Role.FUSER))
@pytest.mark.parametrize("variants", [0, 1, 2])
def test_a_fuser_names_the_parts_of_every_score(entry: Registered, params: Params, variants: int) -> None:
    candidates = union(searches(variants), SAMPLE.attributes)
    scale = entry.component.scale(params) if hasattr(entry.component, "scale") else entry.about.gives

    answer = entry.component(params).fuse(query(), candidates)

    assert isinstance(answer, Fused)
    assert answer.parts.shape == (len(candidates), len(answer.names))
    assert np.isfinite(answer.parts).all()
    after = fused(entry.name, scale, candidates, answer)
    assert len(set(answer.names)) == len(answer.names)
    assert set(after.ids.tolist()) == set(candidates.ids.tolist())
    assert len(np.unique(after.score)) > 1 or not variants
    if scale is Scale.UNIT:
        total = answer.parts.sum(axis=1)
        assert np.all((total >= -1e-9) & (total <= 1 + 1e-9))


@pytest.mark.parametrize(("entry", "params"), _of(Role.FUSER))
def test_the_score_of_a_candidate_does_not_depend_on_its_row(entry: Registered, params: Params) -> None:
    candidates = union(searches(2), SAMPLE.attributes)
    rows = np.arange(len(candidates))[::-1]

    plain = entry.component(params).fuse(query(), candidates)
    turned = entry.component(params).fuse(query(), candidates.take(rows))

    assert np.allclose(plain.parts[rows], turned.parts)


@pytest.mark.parametrize(("entry", "params"), _of(Role.SIGNAL))
def test_a_signal_answers_one_finite_number_per_row_and_tells_some_rows_apart(
    entry: Registered, params: Params
) -> None:
    component, different = entry.component(params), 0
    for before in (pool(name, entry) for name in SCORES):
        for asked in QUERIES:
            column = component.evidence(asked, before, SAMPLE)
            assert isinstance(column, np.ndarray)
            assert (column.dtype, column.shape) == (np.float64, (len(before),))
            assert np.isfinite(column).all()
            after, _ = signalled(entry.name, component.combine, params, before, column, np.zeros(len(before)))
            assert np.array_equal(after.ids, before.ids)
            assert np.array_equal(column, component.evidence(asked, before, SAMPLE))
            different = max(different, len(np.unique(column)))

    assert different > 1


@pytest.mark.parametrize(("entry", "params"), _of(Role.RERANKER))
def test_a_reranker_invents_no_memory_repeats_itself_and_changes_some_pool(entry: Registered, params: Params) -> None:
    component, changed = entry.component(params), False
    for before in (pool(name, entry) for name in SCORES):
        for asked in QUERIES:
            answer = component.rerank(asked, before, SAMPLE)
            assert isinstance(answer, Grouped if entry.about.groups else Rescored | Selected)
            if not isinstance(answer, Selected):
                assert (answer.scores.dtype, answer.scores.shape) == (np.float64, (len(before),))
                assert np.isfinite(answer.scores).all()
            after, again = (_reranked(entry, before, a) for a in (answer, component.rerank(asked, before, SAMPLE)))
            assert set(after.candidates.parents.tolist()) <= set(before.candidates.parents.tolist())
            assert np.array_equal(after.ids, again.ids)
            assert np.array_equal(after.score, again.score)
            changed |= not (np.array_equal(before.ids, after.ids) and np.array_equal(before.score, after.score))

    assert changed


def _reranked(entry: Registered, before: Pool, answer: Any) -> Pool:
    """The pool after a rerank step, as the runner makes it."""
    scale = entry.about.gives or (before.scale.widened if entry.about.widens else before.scale)
    return reranked(entry.name, scale, before, answer)


@pytest.mark.parametrize(("entry", "params"), _of(Role.ANNOTATOR))
def test_an_annotator_speaks_only_of_ranked_rows_and_not_always_the_same(entry: Registered, params: Params) -> None:
    component = entry.component(params)
    said = []
    for before, asked, store in product((pool(name, entry) for name in SCORES), QUERIES, (SAMPLE, ENCODED)):
        notes = component.annotate(asked, seal(before), store)
        assert isinstance(notes, Notes)
        assert _told(check_notes(notes, before, entry.name)) == _told(notes)
        assert _told(notes) == _told(component.annotate(asked, seal(before), store))
        said.append(_told(notes))

    assert any(told != said[0] for told in said)


def _told(notes: Notes) -> tuple[object, ...]:
    return dict(notes.by_id), notes.overall, notes.warnings, () if notes.keep is None else tuple(notes.keep.tolist())


@pytest.mark.requirement("P9")
@pytest.mark.parametrize(("entry", "params"), _of(Role.SIGNAL, Role.RERANKER, Role.ANNOTATOR))
@pytest.mark.parametrize("scores", [{}, {1: 0.9, 2: 0.1}], ids=["none", "two"])
def test_pools_of_a_store_that_lacks_a_part_are_answered_too(
    entry: Registered, params: Params, scores: dict[int, float]
) -> None:
    component = entry.component(params)
    before = pool_of(LACKING, scores, scale=entry.about.needs[0] if entry.about.needs else Scale.UNIT)

    match entry.role:
        case Role.SIGNAL:
            _expected(entry, component.evidence(query(), before, LACKING), np.ndarray)
        case Role.RERANKER:
            _expected(entry, component.rerank(query(), before, LACKING), Rescored, Grouped, Selected)
        case _:
            _expected(entry, component.annotate(query(), seal(before), LACKING), Notes)
