"""The shipped pipelines, built and run on a store of plain data."""

from __future__ import annotations

import pytest
from components.asking import query
from components.fake_store import DAY, Edge, FakeStore, Memory

from config.sources import presets
from engine.assembly import registry
from pipeline.builder import build
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


def test_the_catalogue_keeps_the_constants_of_the_catalogue() -> None:
    pipeline = build("catalogue", registry(), {})
    params = {step.id: step.params.model_dump() for step in (*pipeline.candidates.channels, pipeline.fusion.fuser)}

    weights = {"title": 10.0, "triggers": 5.0, "path": 2.0, "body": 1.0}
    assert params["fts5"]["weights"] == weights
    assert (params["bm25"]["k1"], params["bm25"]["b"], params["bm25"]["fields"]) == (1.2, 0.75, weights)
    assert (params["degree"]["degree_cap"], params["degree"]["boost_cap"]) == (50.0, 0.15)
    assert (params["rrf"]["k"], params["rrf"]["convergence_bonus"], params["rrf"]["weights"]) == (
        60.0,
        0.1,
        "by_intent",
    )
