"""Intent, complexity and routing."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from components.asking import query
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.pipeline.model.columns import INTENTS, Mode, Plan
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import NoParams, PipelineContext
from speckit_memory.pipeline.testing import FakeStore, Memory
from speckit_memory.stages.candidates.complexity import STOP_WORDS, Complexity, ComplexityParams
from speckit_memory.stages.candidates.intent import Intent
from speckit_memory.stages.candidates.quick_look import QuickLook, QuickLookParams
from speckit_memory.stages.candidates.router import Router, RouterParams

STORE = FakeStore(Memory(1, triggers=("how we deploy to production on fridays and other days", "deploy")))
PLAN = Plan()


def intent(text: str) -> tuple[str, float]:
    plan = Intent(NoParams()).understand(query(text), PLAN, STORE)
    return plan.intent, round(plan.intent_confidence, 6)


@pytest.mark.requirement("C8.seven")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add a new channel to the pipeline", "add_feature"),
        ("why does the indexer crash on empty files", "fix_bug"),
        ("split the router into smaller modules", "refactor"),
        ("is the token store vulnerable to injection", "security_audit"),
        ("how does the ranking work", "understand"),
        ("acceptance criteria for the search tool", "find_spec"),
        ("why did we choose sqlite over postgres", "find_decision"),
    ],
)
def test_each_intent_is_recognised_with_confidence(text: str, expected: str) -> None:
    name, confidence = intent(text)

    assert name == expected
    assert confidence >= 0.3


@pytest.mark.requirement("C8.passes")
def test_confidence_is_the_evidence_times_its_share() -> None:
    # fix_bug: "crash" is one word, no phrase: .6 · ½ = .3, and nothing else has evidence.
    assert intent("crash") == ("fix_bug", 0.3)
    # fix_bug: "crash" .3; refactor: "rename" .3. The first in the list wins with .3 · .3/.6.
    assert intent("crash rename") == ("fix_bug", 0.15)
    # find_spec: one word and the phrase "spec for": .6 · ½ + .4 · ¾.
    assert intent("spec for channels") == ("find_spec", 0.6)


@pytest.mark.requirement("C8")
def test_without_evidence_the_intent_is_to_understand_with_no_confidence() -> None:
    assert intent("wing flow velocity") == ("understand", 0.0)


def test_words_count_in_their_usual_forms() -> None:
    assert intent("crashes") == intent("crashed") == intent("crash")


def test_the_evidence_is_told() -> None:
    plan = Intent(NoParams()).understand(query("spec for channels"), PLAN, STORE)

    assert plan.reasons == ("intent: find_spec (0.60) because of spec, 'spec for'",)


@given(st.text())
def test_any_text_has_one_of_the_seven_intents(text: str) -> None:
    name, confidence = intent(text)

    assert name in INTENTS
    assert 0.0 <= confidence <= 1.0


def complexity(text: str, store: FakeStore = STORE) -> tuple[str, str]:
    plan = Complexity(ComplexityParams()).understand(query(text), PLAN, store)
    return plan.complexity, plan.reasons[-1]


@pytest.mark.requirement("C9.tiers")
@pytest.mark.parametrize(
    ("text", "tier"),
    [
        ("", "simple"),
        ("rank fusion weights", "simple"),
        ("rank fusion weights default", "moderate"),
        ("one two three four five six seven eight", "moderate"),
        ("one two three four five six seven eight nine", "complex"),
        ("How we deploy to production on Fridays and other days", "simple"),
    ],
)
def test_the_number_of_terms_or_an_exact_trigger_decides(text: str, tier: str) -> None:
    assert complexity(text)[0] == tier


@pytest.mark.requirement("C9")
def test_scripts_without_blanks_are_counted_by_characters() -> None:
    assert complexity("検索")[0] == "simple"
    assert complexity("検索結果の順位を決める方法について教えて")[0] == "complex"


@pytest.mark.requirement("C9.label")
def test_the_label_says_how_sure_the_tier_is() -> None:
    assert len(STOP_WORDS) == 37
    assert complexity("deploy")[1] == "complexity: simple (confidence high): the query is a trigger phrase"
    assert complexity("rank")[1] == "complexity: simple (confidence high): 1 terms, 0 of them stop words"
    assert complexity("rank fusion weights")[1].startswith("complexity: simple (confidence medium)")
    assert complexity("what is the")[1].startswith("complexity: simple (confidence low)")


@pytest.mark.requirement("C9.fallback")
def test_a_query_that_nobody_classified_is_complex() -> None:
    # so that a pipeline without the step, or in which it fails, asks every channel
    assert Plan().complexity == "complex"
    assert Router(RouterParams()).understand(query("x"), Plan(), STORE).limits.keys() == {
        "vector", "fts5", "bm25", "graph", "degree",
    }  # fmt: skip


@pytest.mark.requirement("P7")
def test_borders_out_of_order_are_reported() -> None:
    here = PipelineContext((), (), (), ())

    assert [path for path, _ in Complexity.check(ComplexityParams(simple=8, complex=8), here)] == [("complex",)]


ALL = ("vector", "fts5", "bm25", "graph", "degree", "trigger")


def context(*channels: str, uses: tuple[str, ...] = ("complexity", "router")) -> PipelineContext:
    return PipelineContext(channels, (Scale.BM25,) * len(channels), (*uses, *channels), (*uses, *channels))


@pytest.mark.requirement("C10.routes")
@pytest.mark.parametrize(
    ("tier", "channels", "limit"),
    [
        ("simple", ("vector", "fts5"), 10),
        ("moderate", ("vector", "fts5", "bm25"), 10),
        ("complex", ("vector", "fts5", "bm25", "graph", "degree"), 20),
    ],
)
def test_each_tier_asks_its_channels(
    tier: Literal["simple", "moderate", "complex"], channels: tuple[str, ...], limit: int
) -> None:
    plan = Router(RouterParams()).understand(query("x", limit=10), replace(PLAN, complexity=tier), STORE)

    assert plan.channels == (*channels, "constitutional", "identifier", "phrase", "surface", "trigger")
    assert plan.limits == dict.fromkeys(channels, limit)


@pytest.mark.requirement("C10")
def test_the_limit_of_a_tier_yields_to_a_larger_request_only() -> None:
    plan = replace(PLAN, complexity="simple")

    few = Router(RouterParams()).understand(query("x", limit=3), plan, STORE)

    assert few.limits == {"vector": 5, "fts5": 5}


@pytest.mark.requirement("P7.two_channels", "C10.two")
def test_a_tier_that_leaves_fewer_than_two_channels_is_reported_at_its_place() -> None:
    problems = dict(Router.check(RouterParams(), context("vector", "bm25", "trigger")))

    assert problems == {
        ("simple",): "simple queries keep fewer than 2 channels: of vector, fts5, this pipeline has vector",
    }
    assert list(Router.check(RouterParams(), context(*ALL))) == []


@pytest.mark.requirement("C10", "P7")
def test_a_channel_that_is_always_asked_does_not_count_as_one_of_the_two() -> None:
    params = RouterParams.model_validate({"simple": {"channels": ["vector", "trigger"]}})

    assert [path for path, _ in Router.check(params, context(*ALL))] == [("simple",)]


@pytest.mark.requirement("P7")
def test_routing_without_a_complexity_step_is_reported() -> None:
    problems = list(Router.check(RouterParams(), context(*ALL, uses=("router",))))

    assert [path for path, _ in problems] == [()]


@pytest.mark.requirement("T1")
@pytest.mark.parametrize(
    ("mode", "declared", "asked"),
    [
        ("quick", ("bm25", "vector", "graph", "trigger"), ("bm25", "trigger")),
        ("auto", ("bm25", "vector", "graph", "trigger"), None),
        ("deep", ("bm25", "vector"), None),
        ("quick", ("vector", "graph"), None),  # or nothing would be asked
    ],
)
def test_a_quick_look_asks_what_goes_by_words(
    mode: Mode, declared: tuple[str, ...], asked: tuple[str, ...] | None
) -> None:
    params = QuickLook.settled(QuickLookParams(), context(*declared))
    assert QuickLook(params).understand(query("x", mode=mode), PLAN, STORE).channels == asked


def test_a_quick_look_asks_no_more_than_the_plan() -> None:
    look = QuickLook(QuickLook.settled(QuickLookParams(), context("bm25", "fts5", "vector")))
    narrow = replace(PLAN, channels=("fts5", "vector"))
    assert look.understand(query("x", mode="quick"), narrow, STORE).channels == ("fts5",)
    deep = query("x", mode="quick").planned(replace(PLAN, mode="deep"))
    assert look.understand(deep, deep.plan, STORE).channels is None
