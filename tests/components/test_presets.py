"""The shipped pipelines, built and run on a store of plain data."""

from __future__ import annotations

import pytest
from components.asking import query
from components.flags import OPEN

from speckit_memory.config.flags.flags import load_flags
from speckit_memory.config.pipelines.sources import presets
from speckit_memory.engine.components import registry
from speckit_memory.pipeline.configuration.binding import BoundParameters
from speckit_memory.pipeline.configuration.builder import build, examine
from speckit_memory.pipeline.running.runner import Runner
from speckit_memory.pipeline.testing import DAY, Edge, FakeStore, Memory

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
@pytest.mark.parametrize("name", [name for name in presets() if name != "resume"])  # which searches no words
def test_every_shipped_pipeline_answers_and_finds_what_was_asked(name: str) -> None:
    runner = Runner(build(name, registry(), {}), strict=True)

    answers = {text: runner.run(query(text), STORE).pool.candidates.parents.tolist() for text in QUERIES}

    ordinary = [memory for memory in answers["reciprocal rank fusion"] if memory != 4]
    assert ordinary[0] == 1
    assert 5 not in {memory for found in answers.values() for memory in found}


@pytest.mark.requirement("C6.first")
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


ELSEWHERE = {"single": "bm25", "handover": "resume", "acronyms": "default"}
"""`single` passes the only channel of a baseline through, the catalogue has seven; `handover` serves a mode, and of
`acronyms` the catalogue says nothing."""


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
        flag
        for name in presets()
        for checked in [examine(name, registry(), {})]
        for step in (*checked.effective.steps(), *checked.effective.inactive)
        for flag in step.flags
    }

    assert used == load_flags({}).keys()


def test_what_the_catalogue_holds_back_is_off_until_its_flag_is_opened() -> None:
    held_back = {"complexity", "router", "degree", "novelty", "interference", "channel_floor", "confidence_cut"}

    shipped, opened = (examine("catalogue", registry(), environ).effective.steps() for environ in ({}, OPEN))

    assert held_back.isdisjoint(step.id for step in shipped)
    assert held_back <= {step.id for step in opened}
    assert len(build("catalogue", registry(), OPEN).rerank) == 14


@pytest.mark.requirement("I6")
def test_the_quality_preset_is_the_default_with_other_weights_and_a_notice() -> None:
    default, quality = (examine(name, registry(), {}).bound for name in ("default", "quality"))

    def parameters(entry: BoundParameters) -> dict[str, object]:
        return {} if entry.params is None else entry.params.model_dump()

    assert [entry.step.use for entry in quality] == [entry.step.use for entry in default]
    changed = [
        (entry.step.use, *(key for key, value in parameters(entry).items() if parameters(same)[key] != value))
        for entry, same in zip(quality, default, strict=False)
        if parameters(entry) != parameters(same)
    ]
    assert changed == [("encoder", "weight"), ("encoder_notice", "required")]


class Broken:
    def __getattr__(self, name: str) -> object:
        raise RuntimeError("the phrases are broken")


@pytest.mark.requirement("C9")
def test_a_failing_judgement_of_complexity_leaves_the_query_complex_and_says_fallback() -> None:
    store = FakeStore(Memory(1, "", ("alpha",), numbers=NUMBERS))
    store.triggers = Broken()  # type: ignore[assignment]

    outcome = Runner(build("default", registry(), {})).run(query("alpha"), store)

    assert (outcome.query.plan.complexity, outcome.query.plan.complexity_confidence) == ("complex", "fallback")
    assert "complexity" in [part.part for part in outcome.trace.degraded]
    assert outcome.pool.ids.tolist() == [1]
