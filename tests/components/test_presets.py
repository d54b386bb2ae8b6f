"""The shipped pipelines, built and run on a store of plain data."""

from __future__ import annotations

import pytest
from components.asking import query
from components.fake_store import DAY, Edge, FakeStore, Memory
from components.flags import OPEN

from config.flags import load_flags
from config.sources import presets
from engine.assembly import registry
from pipeline.builder import build, examine
from pipeline.runner import Runner

NUMBERS = {"created_at": 390 * DAY, "updated_at": 395 * DAY, "stability": 5.0, "importance_weight": 0.5}
STORE = FakeStore(
    Memory(1, "Rank fusion", ("fusion of ranked lists by reciprocal rank", "weights of lists"), numbers=NUMBERS),
    Memory(2, "Forgetting", ("memories decay until a review",), triggers=("decay",), numbers=NUMBERS),
    Memory(3, "Storage", ("one file holds the lists",), numbers=NUMBERS),
    Memory(4, "House rules", ("never push untested",), tier="constitutional", numbers=NUMBERS),
    Memory(5, "Old fusion", ("fusion of ranked lists",), tier="deprecated", numbers=NUMBERS),
    edges=(Edge(1, 2, "caused", 0.9),),
)
QUERIES = (
    "reciprocal rank fusion",
    "how are the ranked lists of several channels merged into one list",
    "decay",
    "zebra",
)


@pytest.mark.requirement("P1", "P2")
@pytest.mark.parametrize("name", presets())
def test_every_shipped_pipeline_answers_and_finds_what_was_asked(name: str) -> None:
    runner = Runner(build(name, registry(), {}), strict=True)

    answers = {text: runner.run(query(text), STORE).pool.candidates.parents.tolist() for text in QUERIES}

    ordinary = [memory for memory in answers["reciprocal rank fusion"] if memory != 4]
    assert ordinary[0] == 1
    assert 5 not in {memory for found in answers.values() for memory in found}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("name", ["default", "catalogue"])
@pytest.mark.parametrize("text", QUERIES)
def test_constitutional_memories_come_first_whatever_the_question(name: str, text: str) -> None:
    outcome = Runner(build(name, registry(), {}), strict=True).run(query(text), STORE)

    assert outcome.pool.candidates.parents[0] == 4


@pytest.mark.requirement("C14")
def test_a_question_without_any_hit_is_searched_again_with_words_alone() -> None:
    silent = FakeStore(Memory(1, "", ("alpha",), numbers=NUMBERS))

    outcome = Runner(build("catalogue", registry(), {}), strict=True).run(query("zebra"), silent)

    assert len(outcome.pool) == 0
    assert [reason.partition(":")[0] for reason in outcome.query.plan.reasons][-2:] == ["fallback", "fallback"]


@pytest.mark.requirement("C6", "C14")
def test_a_constitutional_memory_is_no_answer_and_surfaces_in_every_try() -> None:
    store = FakeStore(
        Memory(1, "", ("alpha",), numbers=NUMBERS), Memory(2, "Rules", tier="constitutional", numbers=NUMBERS)
    )

    outcome = Runner(build("catalogue", registry(), {}), strict=True).run(query("zebra"), store)

    assert outcome.pool.candidates.parents.tolist() == [2]
    assert outcome.query.plan.attempt == 2


ELSEWHERE = {"single": "bm25"}
"""`single` passes the only channel of a baseline through; the catalogue has seven."""


@pytest.mark.requirement("P2")
def test_every_component_has_a_place_in_the_catalogue() -> None:
    steps = {
        name: [*checked.effective.steps(), *checked.effective.inactive]
        for name in {"catalogue", *ELSEWHERE.values()}
        for checked in [examine(name, registry(), {})]
    }

    homeless = [
        entry.name
        for entry in registry()
        if entry.name not in {step.use for step in steps[ELSEWHERE.get(entry.name, "catalogue")]}
    ]
    assert homeless == []


def test_every_flag_of_a_step_is_declared_and_every_declared_flag_has_a_step() -> None:
    used = {
        step.flag
        for name in presets()
        for checked in [examine(name, registry(), {})]
        for step in (*checked.effective.steps(), *checked.effective.inactive)
    }

    assert used - {""} == load_flags({}).keys()


def test_what_the_catalogue_holds_back_is_off_until_its_flag_is_opened() -> None:
    held_back = {"complexity", "router", "degree", "novelty", "interference", "channel_floor", "confidence_cut"}

    shipped, opened = (examine("catalogue", registry(), environ).effective.steps() for environ in ({}, OPEN))

    assert held_back.isdisjoint(step.id for step in shipped)
    assert held_back <= {step.id for step in opened}
    assert len(build("catalogue", registry(), OPEN).rerank) == 12


CONSTANTS = {
    "complexity": {"simple": 3, "complex": 8},
    "pressure": {"focused": 0.6, "quick": 0.8},
    "signal_vocabulary": {"correction": 0.2, "preference": 0.1},
    "expansion": {"variants": 3},
    "embedding_expansion": {"neighbours": 5, "terms": 8},
    "coverage": {"minimum": 3},
    "fts5": {"weights": {"title": 10.0, "triggers": 5.0, "path": 2.0, "body": 1.0}},
    "bm25": {"k1": 1.2, "b": 0.75, "fields": {"title": 10.0, "triggers": 5.0, "path": 2.0, "body": 1.0}},
    "degree": {"degree_cap": 50.0, "boost_cap": 0.15},
    "fallback": {"similarity": 0.3, "floor": 0.17, "limit_factor": 2.0},
    "rrf": {"k": 60.0, "convergence_bonus": 0.1, "weights": "by_intent", "normalise": "min_max"},
    "importance": {
        "constitutional": 3.0, "critical": 2.0, "important": 1.5, "normal": 1.0, "temporary": 0.5, "deprecated": 0.0,
    },
    "validation": {"base": 0.9, "quality": 0.2, "level": 0.02, "most_level": 0.06, "least": 0.8, "most": 1.2},
    "novelty": {"weight": 0.15, "fade_hours": 12.0, "until_hours": 48.0, "ceiling": 0.95},
    "classified": {"model": "five_factor", "weight": 1.0, "classification_decay": True},
    "interference": {"penalty": 0.08},
    "field_match": {"title": 10.0, "triggers": 30.0, "anchors": 20.0, "body": 1.0},
    "contiguity": {"window": 3600.0, "weight": 0.15},
    "folder_score": {
        "recency": 0.4, "importance": 0.3, "activity": 0.2, "validation": 0.1, "fade": 0.1, "full_at": 5,
    },
    "hierarchy": {"parent": 0.8, "grandparent": 0.6, "sibling": 0.5},
    "causal": {"per_hop": 0.05, "seed_share": 0.25, "most_seeds": 5, "cap_group": "causal_session", "cap": 0.2},
    "session": {"weight": 0.15, "cap_group": "causal_session", "cap": 0.2},
    "coactivation": {"weight": 0.25, "related": 5, "min_similarity": 0.7, "hops": 2, "decay": 0.5, "most": 20},
    "collapse": {"aggregate": "mpab", "factor": 0.3},
    "channel_floor": {"top": 10, "quality": 0.2},
    "mmr": {"lambda_": "by_intent", "otherwise": 0.7, "pool": 20, "at_least": 2},
    "confidence_cut": {"times_median": 2.0, "at_least": 3},
    "context_diversity": {"share": 0.5},
    "state_limits": {
        "limits": {"HOT": 5, "WARM": 10, "COLD": 3, "DORMANT": 2, "ARCHIVED": 1},
        "hot": 0.8, "warm": 0.25, "cold": 0.05, "dormant": 0.02, "idle_days": 90.0,
    },
    "session_dedup": {"tokens_each": 200},
    "evidence_gap": {"form": "z", "least_z": 1.5, "least_score": 0.015},
    "dynamic_token_budget": {"budget": "by_complexity", "simple": 1500, "moderate": 2500, "complex": 4000},
}  # fmt: skip
"""The catalogue's figures by step, each from the feature map."""


@pytest.mark.parametrize("step", CONSTANTS)
def test_the_catalogue_keeps_the_constants_of_the_catalogue(step: str) -> None:
    bound = examine("catalogue", registry(), OPEN).bound
    params = {entry.step.id: entry.params.model_dump() for entry in bound if entry.params}

    assert {name: params[step][name] for name in CONSTANTS[step]} == CONSTANTS[step]


@pytest.mark.requirement("C10")
def test_the_catalogue_routes_by_tier() -> None:
    router = next(entry.params for entry in examine("catalogue", registry(), OPEN).bound if entry.step.id == "router")
    assert router is not None

    assert {tier: route for tier, route in router.model_dump().items() if tier != "always"} == {
        "simple": {"channels": ("vector", "fts5"), "limit": 5},
        "moderate": {"channels": ("vector", "fts5", "bm25"), "limit": 10},
        "complex": {"channels": ("vector", "fts5", "bm25", "graph", "degree"), "limit": 20},
    }
