"""Known answers of the annotators, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from answered import present
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.pipeline.model.columns import Notes
from speckit_memory.pipeline.ports import Filter, Ids, Passage
from speckit_memory.pipeline.roles.contracts import NoParams, PipelineContext
from speckit_memory.pipeline.testing import DAY, NOW, Edge, FakePassages, FakeStore, Memory, ask, ranking_of
from speckit_memory.stages.annotate.anchor_filter import AnchorFilter
from speckit_memory.stages.annotate.attribution import Attribution
from speckit_memory.stages.annotate.constitutional_guarantee import (
    ConstitutionalGuarantee,
    ConstitutionalGuaranteeParams,
)
from speckit_memory.stages.annotate.duplicates import Duplicates, DuplicatesParams
from speckit_memory.stages.annotate.evidence_gap import EvidenceGap, EvidenceGapParams
from speckit_memory.stages.annotate.fitting import Fitting, FittingParams
from speckit_memory.stages.annotate.session_dedup import SessionDedup, SessionDedupParams
from speckit_memory.stages.annotate.state_filter import StateFilter, StateFilterParams, StateName
from speckit_memory.stages.annotate.superseded import Superseded, SupersededParams
from speckit_memory.stages.annotate.token_budget import TokenBudget, TokenBudgetParams


def kept(notes: object, ids: Ids) -> list[int]:
    assert isinstance(notes, Notes)
    rows: list[int] = (ids if notes.keep is None else ids[notes.keep]).tolist()
    return rows


def falling(store: FakeStore) -> dict[int, float]:
    return {i: 1.0 - i / 100 for i in store.memories}


AGES = {1: 1.0, 2: 20.0, 3: 80.0, 4: 100.0}


def aged(**tiers: str) -> FakeStore:
    """Stability 1: R after 1, 20 and 80 days is 0.90, 0.42 and 0.22."""
    memories = [
        Memory(i, tier=tiers.get(f"m{i}", "normal"), numbers={"created_at": NOW - age * DAY, "stability": 1.0})
        for i, age in AGES.items()
    ]
    return FakeStore(*memories, Memory(5))


@pytest.mark.requirement("A1", "M3")
def test_states_are_noted_and_nothing_is_hidden_unless_asked_for() -> None:
    store = aged(m4="critical")
    ranking = ranking_of(store, falling(store))

    notes = present(StateFilter(StateFilterParams()).annotate(ask(), ranking, store))

    named = {1: "HOT", 2: "WARM", 3: "COLD", 4: "HOT", 5: "UNKNOWN"}
    assert notes.by_id == {memory: {"state": state} for memory, state in named.items()}
    assert kept(notes, ranking.ids) == [1, 2, 3, 4, 5]


@pytest.mark.requirement("A1")
def test_colder_memories_are_hidden_and_an_unknown_state_passes() -> None:
    store = aged()
    ranking = ranking_of(store, falling(store))

    notes = present(StateFilter(StateFilterParams(min_state="WARM")).annotate(ask(), ranking, store))

    assert kept(notes, ranking.ids) == [1, 2, 5]
    assert notes.overall == {"hidden_by_state": 2}


@pytest.mark.requirement("A1")
def test_limits_count_from_the_top_of_each_state() -> None:
    store = FakeStore(*(Memory(i, numbers={"created_at": NOW, "stability": 1.0}) for i in range(1, 5)), Memory(5))
    ranking = ranking_of(store, falling(store))

    notes = StateFilter(StateFilterParams(limits={"HOT": 2, "WARM": 0})).annotate(ask(), ranking, store)

    assert kept(notes, ranking.ids) == [1, 2, 5]


@pytest.mark.requirement("M3", "A1.limits")
def test_the_catalogue_shows_so_many_of_each_state() -> None:
    # days at stability .01 whose retrievability (1 + 19/81 · t / S)^-.5 is 1, .30 (t = .43), .10 (4.2), .03 (47),
    # .019 (118); twelve memories of each state
    ages = {"HOT": 0.0, "WARM": 0.43, "COLD": 4.2, "DORMANT": 47.0, "ARCHIVED": 118.0}
    numbers = [{"created_at": NOW - age * DAY, "stability": 0.01} for age in ages.values() for _ in range(12)]
    store = FakeStore(*(Memory(i, numbers=facts) for i, facts in enumerate(numbers, start=1)))
    limits: dict[StateName, int] = {"HOT": 5, "WARM": 10, "COLD": 3, "DORMANT": 2, "ARCHIVED": 1}

    notes = StateFilter(StateFilterParams(limits=limits)).annotate(ask(), ranking_of(store, falling(store)), store)

    assert isinstance(notes, Notes)
    states = [notes.by_id[i]["state"] for i in kept(notes, np.arange(1, 61))]
    assert {state: states.count(state) for state in ages} == limits


@pytest.mark.requirement("A1")
def test_thresholds_must_fall() -> None:
    params = StateFilterParams(warm=0.9, dormant=0.05)
    alone = PipelineContext(channels=(), scales=(), steps=("state_filter",), uses=("state_filter",))

    assert [path for path, _ in StateFilter.check(params, alone)] == [("warm",), ("dormant",)]
    assert list(StateFilter.check(StateFilterParams(), alone)) == []


@pytest.mark.requirement("A4.fitting")
def test_rows_fit_that_are_named_or_hold_most_of_the_question_and_stand_near_the_best() -> None:
    store = FakeStore(
        Memory(1, title="quokka cache warm"), Memory(2, title="quokka cache"), Memory(3, title="quokka"),
        Memory(4, title="quokka cache warm"),
    )  # fmt: skip
    scores = {1: 1.0, 2: 0.9, 3: 0.85, 4: 0.1}
    step = Fitting(FittingParams(min_coverage=0.3))

    notes = present(step.annotate(ask(text="quokka cache warm"), ranking_of(store, scores), store))
    assert kept(notes, ranking_of(store, scores).ids) == [1, 2]
    assert notes.overall == {"unfit": 2}
    nothing = present(step.annotate(ask(text="walrus tusk"), ranking_of(store, scores), store))
    assert (kept(nothing, ranking_of(store, scores).ids), nothing.warnings) == ([], ("No memory fits the query.",))
    named = ranking_of(store, scores, found={"bm25": [1, 2, 3, 4], "trigger": [3]})
    telling = Fitting(FittingParams(naming=["trigger"], min_coverage=1.0))
    assert kept(telling.annotate(ask(text="quokka cache warm"), named, store), named.ids) == [1, 3]


@pytest.mark.requirement("A4.fitting")
def test_cosines_are_evidence_on_the_scale_of_the_bundled_vectors_alone() -> None:
    store = FakeStore(Memory(1, title="quokka"), Memory(2, title="heron"))
    ranking = ranking_of(store, {1: 1.0, 2: 0.9}, found={"vector": [1, 2]}, raw={"vector": {1: 0.7, 2: 0.1}})
    step = Fitting(FittingParams(similarity="vector", min_evidence=0.8, min_coverage=0.4, min_share=0.0))

    # each holds half of what the question tells; 1/2 + 0.7 is enough and 1/2 + 0.1 is not
    assert kept(step.annotate(ask(text="quokka heron"), ranking, store), ranking.ids) == [1]
    assert kept(step.annotate(ask(text="quokka heron"), ranking, store.encoded()), ranking.ids) == [1, 2]


@pytest.mark.requirement("A2")
def test_what_the_session_was_sent_is_told_of_the_rows_within_the_limit() -> None:
    store = FakeStore(Memory(1), Memory(2), Memory(3), delivered={"s": {1, 3}})
    ranking = ranking_of(store, falling(store))
    step = SessionDedup(SessionDedupParams())

    notes = present(step.annotate(ask(session="s"), ranking, store))

    assert notes.by_id == {memory: {"sent_before": [f"text of {memory}"]} for memory in (1, 3)}
    assert notes.overall == {"deduplicated": {"action": "line", "tokens_each": 200}}
    assert notes.keep is None
    assert list(present(step.annotate(ask(session="s", limit=2), ranking, store)).by_id) == [1]
    assert step.annotate(ask(session="s", dedup=False), ranking, store) == Notes()
    assert step.annotate(ask(), ranking, store) == Notes()


@pytest.mark.requirement("C6")
def test_constitutional_memories_use_up_no_limit_of_a_state() -> None:
    store = FakeStore(*(Memory(i, tier="constitutional" if i < 4 else "normal") for i in range(1, 8)))
    for memory in store.memories.values():
        memory.numbers |= {"stability": 1.0, "created_at": NOW}

    ranking = ranking_of(store, falling(store))
    notes = StateFilter(StateFilterParams(limits={"HOT": 2})).annotate(ask(), ranking, store)

    assert kept(notes, ranking.ids) == [1, 2, 3, 4, 5]


@pytest.mark.requirement("C6", "A3.reports")
def test_missing_constitutional_memories_are_named() -> None:
    store = FakeStore(
        Memory(1, tier="constitutional"), Memory(2, tier="constitutional"), Memory(3),
        Memory(4, tier="constitutional", folder="elsewhere"),
    )  # fmt: skip
    guard = ConstitutionalGuarantee(ConstitutionalGuaranteeParams())

    complete = guard.annotate(ask(wanted=Filter(folder="")), ranking_of(store, {1: 0.9, 2: 0.8, 4: 0.7}), store)
    assert complete == Notes(overall={"constitutional": {"expected": 3, "missing": []}})
    # the limit of the query cuts off what stands below
    partial = present(guard.annotate(ask(limit=4), ranking_of(store, {1: 0.9, 3: 0.8}), store))
    assert partial.overall == {"constitutional": {"expected": 3, "missing": [2, 4]}}
    assert partial.warnings == ("2 of 3 constitutional memories are not in this answer: ids [2, 4].",)
    scoped = present(guard.annotate(ask(wanted=Filter(folder="elsewhere")), ranking_of(store, {4: 0.9}), store))
    assert scoped.overall == {"constitutional": {"expected": 3, "missing": [1, 2]}}
    # half of two rows is one: no more is due
    two = guard.annotate(ask(limit=2), ranking_of(store, {1: 0.9, 3: 0.8, 2: 0.1}), store)
    assert two == Notes(overall={"constitutional": {"expected": 3, "missing": [2, 4]}})
    narrowed = present(guard.annotate(ask(wanted=Filter(folders=("elsewhere",))), ranking_of(store, {4: 0.9}), store))
    assert narrowed.overall == {"constitutional": {"expected": 3, "missing": [1, 2]}}


@pytest.mark.requirement("A4.text")
def test_the_z_test_warns_when_nothing_stands_out() -> None:
    store = FakeStore(*(Memory(i) for i in range(1, 9)))
    gap = EvidenceGap(EvidenceGapParams())

    flat = present(gap.annotate(ask(), ranking_of(store, {1: 0.9, 2: 0.8, 3: 0.7}), store))
    # mean .8, deviation .0816: z = 1.2247
    assert flat.overall == {"evidence_gap": True, "z": 1.2247}
    assert len(flat.warnings) == 1
    # one of eight at 1, the others at 0: mean 1/8, deviation √7/8, z = √7
    clear = gap.annotate(ask(), ranking_of(store, {i: float(i == 1) for i in store.memories}), store)
    assert clear == Notes(overall={"evidence_gap": False, "z": 2.6458})


@pytest.mark.requirement("A4")
def test_a_faint_best_score_is_a_gap_whatever_its_z() -> None:
    store = FakeStore(*(Memory(i) for i in range(1, 9)))
    gap = EvidenceGap(EvidenceGapParams())

    faint = present(gap.annotate(ask(), ranking_of(store, {i: 0.014 * (i == 1) for i in store.memories}), store))
    assert faint.overall["evidence_gap"] is True
    assert "hardly better than nothing" in faint.warnings[0]
    # for a single row only the absolute test is made
    assert present(gap.annotate(ask(), ranking_of(store, {1: 0.5}), store)).overall == {"evidence_gap": False, "z": 0.0}


@pytest.mark.requirement("A4.z")
@pytest.mark.parametrize(
    ("scores", "gap"),
    [
        ([0.9, 0.1, 0.1, 0.1], False),  # mean .3, deviation √(.36 + 3 · .04)/2 = .3464: z = .6/.3464 = 1.732
        ([0.9, 0.1, 0.1], True),  # three values never reach 1.5: √2 = 1.414
        ([0.9, 0.5, 0.1, 0.1], False),  # mean .4, deviation √(.25 + .01 + .09 + .09)/2 = .3317: z = 1.508
        ([0.9, 0.6, 0.1, 0.1], True),  # mean .425, deviation √(.2256 + .0306 + 2 · .1056)/2 = .3419: z = 1.389
        ([0.015, 0.0, 0.0, 0.0], False),  # the least score that counts
        ([0.0149, 0.0, 0.0, 0.0], True),
    ],
)
def test_a_gap_is_a_z_below_one_and_a_half_or_a_best_score_below_fifteen_thousandths(
    scores: list[float], gap: bool
) -> None:
    store = FakeStore(*(Memory(i) for i in range(1, 5)))

    notes = EvidenceGap(EvidenceGapParams(form="z")).annotate(
        ask(), ranking_of(store, dict(enumerate(scores, start=1))), store
    )

    assert isinstance(notes, Notes)
    assert notes.overall["evidence_gap"] is gap


@pytest.mark.requirement("A4")
def test_what_surfaces_anyway_is_no_evidence() -> None:
    store = FakeStore(Memory(1, tier="constitutional"))

    for form in ("z", "coverage"):
        gap = EvidenceGap(EvidenceGapParams(form=form))
        only_law = present(gap.annotate(ask("x"), ranking_of(store, {1: 0.9}), store))
        assert only_law.overall == {"evidence_gap": True}
        assert present(gap.annotate(ask("x"), ranking_of(store, {}), store)).overall == {"evidence_gap": True}


@pytest.mark.requirement("A4")
def test_coverage_is_the_share_of_the_querys_information_that_one_row_holds() -> None:
    store = FakeStore(Memory(1, title="rank", chunks=("fusion",)), Memory(2, triggers=("rank",)), Memory(3))
    ranking = ranking_of(store, {1: 0.9, 2: 0.8})
    gap = EvidenceGap(EvidenceGapParams(form="coverage"))

    assert gap.annotate(ask("rank fusion"), ranking, store) == Notes(overall={"evidence_gap": False, "coverage": 1.0})
    # idf of a word in 1 of 3 memories: log(2.5/1.5 + 1) = .9808; of one in none: log(3.5/.5 + 1) = 2.0794
    weak = present(gap.annotate(ask("fusion cuttlefish"), ranking, store))
    assert weak.overall == {"evidence_gap": True, "coverage": 0.3205}
    assert "hold 32% of the query; 40% are expected" in weak.warnings[0]
    assert present(gap.annotate(ask(""), ranking, store)).overall == {"evidence_gap": False, "coverage": 1.0}


EVIDENCE = EvidenceGapParams(form="evidence", top=1, min_coverage=0.4, long=2, similarity="vector", min_cosine=0.3)


@pytest.mark.requirement("A4.evidence")
@pytest.mark.parametrize(
    ("characters", "cosine", "question", "weak"),
    [
        (1000, 0.9, "fusion cuttlefish squid", True),  # 0.9808 / (0.9808 + 2 · 2.0794) = 0.19 of a long text
        (10, 0.9, "fusion cuttlefish squid", False),  # of a short note nobody expects more, and it is similar
        (10, 0.2, "fusion cuttlefish squid", True),
        (10, 0.2, "fusion", False),  # what holds the words need not be similar
        (1000, 0.2, "fusion", False),
        (1000, np.nan, "fusion cuttlefish squid", True),  # without vectors words decide
        (10, np.nan, "fusion cuttlefish", True),
        (10, np.nan, "fusion", False),
    ],
)
def test_evidence_is_what_a_long_text_holds_or_how_similar_a_passage_is(
    characters: float, cosine: float, question: str, weak: bool
) -> None:
    store = FakeStore(Memory(1, chunks=("fusion",), numbers={"characters": characters}), Memory(2), Memory(3))
    ranking = ranking_of(store, {1: 0.9}, found={"vector": [1]}, raw={"vector": {1: cosine}})

    notes = present(EvidenceGap(EVIDENCE).annotate(ask(question), ranking, store))

    assert notes.overall["evidence_gap"] is weak
    assert bool(notes.warnings) is weak


@pytest.mark.requirement("A4.evidence")
def test_a_constitutional_memory_that_answers_is_evidence_and_one_that_does_not_is_none() -> None:
    store = FakeStore(Memory(1, tier="constitutional", chunks=("fusion",)), Memory(2, chunks=("squid",)))
    gap = EvidenceGap(EVIDENCE)

    for scores in ({1: 0.9}, {1: 0.9, 2: 0.8}):
        ranking = ranking_of(store, scores, found={"bm25": list(scores)})
        assert not present(gap.annotate(ask("fusion"), ranking, store)).overall["evidence_gap"]
        assert present(gap.annotate(ask("cuttlefish"), ranking, store)).overall["evidence_gap"]


@pytest.mark.requirement("A4.evidence", "C2.times")
def test_a_question_about_a_time_is_answered_by_what_is_of_that_time() -> None:
    store = FakeStore(Memory(1, numbers={"created_at": 2 * DAY}))
    gap, asked = EvidenceGap(EVIDENCE), ask("what did we do yesterday")

    for times, topic, weak in ((((DAY, 3 * DAY),), (), False), (((3 * DAY, 4 * DAY),), (), True), ((), None, True)):
        of_time = replace(asked, plan=replace(asked.plan, times=times, topic=topic))
        ranking = ranking_of(store, {1: 0.9}, found={"dated": [1]})
        assert present(gap.annotate(of_time, ranking, store)).overall["evidence_gap"] is weak


@pytest.mark.requirement("A5.channels")
def test_channels_are_named_and_counted() -> None:
    store = FakeStore(Memory(1), Memory(2), Memory(3))
    ranking = ranking_of(store, falling(store), found={"vector": [1, 2], "bm25": [2]})

    assert Attribution(NoParams()).annotate(ask(), ranking, store) == Notes(
        by_id={1: {"found_by": ["vector"]}, 2: {"found_by": ["vector", "bm25"]}, 3: {"found_by": []}},
        overall={"attribution": {"vector": {"found": 2, "alone": 1}, "bm25": {"found": 1, "alone": 0}}},
    )


@pytest.mark.requirement("A6.greedy")
def test_rows_stay_from_the_top_as_long_as_they_fit() -> None:
    store = FakeStore(*(Memory(i, chunks=("x" * n,)) for i, n in {1: 400, 2: 401, 3: 4000, 4: 4}.items()))
    ranking = ranking_of(store, falling(store))

    # 100 + 101 + 1000 tokens; the last would fit, but nothing stands below a missing row
    params = TokenBudgetParams(budget=300, snippet=5000, characters_per_token=4)
    notes = present(TokenBudget(params).annotate(ask(), ranking, store))
    assert kept(notes, ranking.ids) == [1, 2]
    assert notes.overall == {
        "token_budget": 300, "tokens": 201, "overflow": {"rows": 4, "kept": 2, "tokens_wanted": 1202},
    }  # fmt: skip
    # only what is sent is counted: snippets of 400 characters
    notes = present(TokenBudget(TokenBudgetParams(budget=301, characters_per_token=4)).annotate(ask(), ranking, store))
    assert notes.overall == {"token_budget": 301, "tokens": 301}
    assert notes.keep is None


@pytest.mark.requirement("A6.tokens")
@pytest.mark.parametrize(("lengths", "kept_rows"), [([4000, 4000], 2), ([4000, 4001], 1), ([8000, 1], 1), ([8001], 1)])
def test_two_thousand_tokens_of_four_characters_are_the_budget(lengths: list[int], kept_rows: int) -> None:
    store = FakeStore(*(Memory(i, chunks=("x" * n,)) for i, n in enumerate(lengths, start=1)))

    # ⌈4000/4⌉ = 1000 tokens each fill the budget of 2000; ⌈4001/4⌉ = 1001 exceeds it; the first row always stays
    ranking = ranking_of(store, falling(store))
    notes = TokenBudget(TokenBudgetParams(snippet=9000, characters_per_token=4)).annotate(ask(), ranking, store)
    assert len(kept(notes, ranking.ids)) == kept_rows


@pytest.mark.requirement("A6")
def test_the_first_row_always_stays_and_rows_past_the_limit_are_not_counted() -> None:
    store = FakeStore(*(Memory(i, chunks=("x" * 4000,), numbers={"characters": 4000.0}) for i in (1, 2)))
    ranking = ranking_of(store, falling(store))
    budget = TokenBudget(TokenBudgetParams(budget=100, sent="content", characters_per_token=4))

    assert kept(budget.annotate(ask(), ranking, store), ranking.ids) == [1]
    assert present(budget.annotate(ask(limit=1), ranking, store)).overall == {"token_budget": 100, "tokens": 1000}


@pytest.mark.requirement("A6")
@pytest.mark.parametrize("sent", ["snippet", "content"])
def test_tokens_are_those_of_the_tokeniser_unless_characters_are_counted(sent: Literal["snippet", "content"]) -> None:
    # the store's tokeniser makes a token of each word: 60 and 60 of them, in 119 characters each
    store = FakeStore(*(Memory(i, chunks=(" ".join("x" * 60),)) for i in (1, 2)))
    ranking = ranking_of(store, falling(store))

    by_words = present(TokenBudget(TokenBudgetParams(budget=100, sent=sent)).annotate(ask(), ranking, store))
    assert kept(by_words, ranking.ids) == [1]
    assert by_words.overall["tokens"] == 60
    # ⌈119 / 4⌉ = 30 tokens each
    of_four = TokenBudget(TokenBudgetParams(budget=100, sent=sent, characters_per_token=4))
    assert present(of_four.annotate(ask(), ranking, store)).overall == {"token_budget": 100, "tokens": 60}


@pytest.mark.requirement("A6.complexity")
@pytest.mark.parametrize(("complexity", "tokens"), [("simple", 1500), ("moderate", 2500), ("complex", 4000)])
def test_the_budget_follows_the_complexity(complexity: str, tokens: int) -> None:
    store = FakeStore(Memory(1))
    budget = TokenBudget(TokenBudgetParams(budget="by_complexity"))

    notes = present(budget.annotate(ask(plan_complexity=complexity), ranking_of(store, {1: 0.5}), store))

    assert notes.overall["token_budget"] == tokens


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=12), st.integers(100, 1000))
def test_what_is_kept_fits_or_is_one_row(lengths: list[int], tokens: int) -> None:
    store = FakeStore(*(Memory(i, chunks=("x" * n,)) for i, n in enumerate(lengths, start=1)))
    ranking = ranking_of(store, falling(store))

    params = TokenBudgetParams(budget=tokens, snippet=2000, characters_per_token=4)
    notes = TokenBudget(params).annotate(ask(limit=20), ranking, store)

    rows = kept(notes, ranking.ids)
    assert rows == ranking.ids.tolist()[: len(rows)]
    assert len(rows) == 1 or sum(-(-lengths[i - 1] // 4) for i in rows) <= tokens


class Sectioned(FakePassages):
    """Passages whose section is their first word."""

    def _passage(self, id_: int) -> Passage:
        passage = super()._passage(id_)
        return replace(passage, anchor=passage.text.partition(" ")[0])


@pytest.mark.requirement("A7.sections")
def test_only_the_named_sections_are_handed_out() -> None:
    store = FakeStore(
        Memory(1, chunks=("state one", "other text", "next steps", "state two"), numbers={"characters": 50.0}),
        Memory(2, chunks=("other text",), numbers={"characters": 10.0}),
    )
    store.passages = Sectioned(store)
    ranking = ranking_of(store, {1: 0.9, 2: 0.8})

    notes = present(AnchorFilter(NoParams()).annotate(ask(anchors=("next", "state")), ranking, store))

    sections = [{"anchor": "state", "text": "state one\n\nstate two"}, {"anchor": "next", "text": "next steps"}]
    assert notes.by_id == {1: {"sections": sections}}
    assert kept(notes, ranking.ids) == [1]
    assert notes.overall == {"anchors": {"characters_sent": 30, "characters_whole": 50, "hidden": 1}}
    assert AnchorFilter(NoParams()).annotate(ask(), ranking, store) == Notes()


@pytest.mark.requirement("C6")
def test_a_constitutional_memory_stays_without_the_named_section() -> None:
    store = FakeStore(
        Memory(1, chunks=("other text",), tier="constitutional", numbers={"characters": 10.0}),
        Memory(2, chunks=("state one",), numbers={"characters": 9.0}),
        Memory(3, chunks=("other text",), numbers={"characters": 10.0}),
    )
    store.passages = Sectioned(store)
    ranking = ranking_of(store, {1: 0.9, 2: 0.8, 3: 0.7})

    notes = present(AnchorFilter(NoParams()).annotate(ask(anchors=("state",)), ranking, store))

    assert kept(notes, ranking.ids) == [1, 2]
    assert notes.by_id == {2: {"sections": [{"anchor": "state", "text": "state one"}]}}
    assert notes.overall == {"anchors": {"characters_sent": 9, "characters_whole": 9, "hidden": 1}}


@pytest.mark.requirement("A7.saving")
def test_one_section_of_a_long_memory_saves_nine_tenths() -> None:
    # a section of 150 tokens of a memory of 2000, at 4 characters each: 1 - 600/8000 = 92.5 % are not sent
    section = "state " + "x" * 594
    store = FakeStore(Memory(1, chunks=(section, "rest " + "y" * 7395), numbers={"characters": 8000.0}))
    store.passages = Sectioned(store)

    notes = present(AnchorFilter(NoParams()).annotate(ask(anchors=("state",)), ranking_of(store, {1: 0.9}), store))

    assert notes.overall == {"anchors": {"characters_sent": 600, "characters_whole": 8000, "hidden": 0}}


def chain(*edges: tuple[int, int]) -> FakeStore:
    return FakeStore(*(Memory(i) for i in range(1, 6)), edges=[Edge(a, b, "supersedes") for a, b in edges])


def twins() -> FakeStore:
    """2, 3 and 5 hold the same text, 1 and 4 none; 2 has two passages."""
    same, none = {"content_hash": "same"}, {"content_hash": "none"}
    empty = {"characters": 0.0}
    return FakeStore(
        Memory(1, "One", numbers=empty, labels=none), Memory(2, chunks=("a", "b"), labels=same),
        Memory(3, chunks=("a", "b"), labels=same), Memory(4, "Four", numbers=empty, labels=none),
        Memory(5, chunks=("a", "b"), labels=same), Memory(6, labels={"content_hash": "other"}), Memory(7),
    )  # fmt: skip


@pytest.mark.requirement("A2")
def test_of_equal_contents_the_best_row_stays_and_names_the_others() -> None:
    ranking = ranking_of(twins(), {1: 0.9, 3: 0.8, 4: 0.7, 6: 0.6, 2: 0.5, 5: 0.5, 7: 0.1})

    notes = present(Duplicates(DuplicatesParams()).annotate(ask(), ranking, twins()))

    assert kept(notes, ranking.ids) == [1, 3, 4, 6, 7]
    assert (notes.by_id, notes.overall) == ({3: {"also_at": [2, 5]}}, {"duplicates": 2})
    marked = Duplicates(DuplicatesParams(action="mark")).annotate(ask(), ranking, twins())
    assert marked == Notes(by_id=notes.by_id, overall={"duplicates": 2})


@pytest.mark.requirement("A2")
def test_passages_of_one_memory_are_no_copies_of_each_other() -> None:
    ranking = ranking_of(twins(), {301: 0.9, 202: 0.8, 302: 0.7, 201: 0.6})

    notes = present(Duplicates(DuplicatesParams()).annotate(ask(), ranking, twins()))

    assert kept(notes, ranking.ids) == [301, 302]
    assert notes.by_id == {301: {"also_at": [2]}}


@pytest.mark.requirement("M7")
def test_a_superseded_memory_names_its_successor() -> None:
    store = chain((1, 2), (3, 2), (4, 5))

    notes = Superseded(SupersededParams()).annotate(ask(), ranking_of(store, {1: 0.1, 2: 0.9, 3: 0.5, 5: 0.2}), store)

    # the successor of 5 is not in the answer, and is named all the same
    assert notes == Notes(by_id={2: {"superseded_by": [1, 3]}, 5: {"superseded_by": [4]}})


@pytest.mark.requirement("M7")
def test_superseded_memories_are_hidden_through_chains_but_not_in_a_circle() -> None:
    hide = Superseded(SupersededParams(action="hide"))

    store = chain((1, 2), (2, 3))
    ranking = ranking_of(store, {3: 0.9, 2: 0.8, 1: 0.7})
    assert kept(hide.annotate(ask(), ranking, store), ranking.ids) == [1]
    # what nothing of the answer supersedes stays, and says by what it is
    ranking = ranking_of(store, {3: 0.9})
    alone = present(hide.annotate(ask(), ranking, store))
    assert (kept(alone, ranking.ids), alone.by_id) == ([3], {3: {"superseded_by": [2]}})
    # 1 and 2 supersede each other, and both supersede 3
    store = chain((1, 2), (2, 1), (1, 3))
    ranking = ranking_of(store, {3: 0.9, 2: 0.8, 1: 0.7})
    notes = present(hide.annotate(ask(), ranking, store))
    assert kept(notes, ranking.ids) == [2, 1]
    assert notes.by_id == {1: {"superseded_by": [2]}, 2: {"superseded_by": [1]}}


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)).filter(lambda e: e[0] != e[1]), max_size=10))
def test_hiding_never_leaves_nothing(edges: list[tuple[int, int]]) -> None:
    store = chain(*edges)
    ranking = ranking_of(store, falling(store))

    notes = Superseded(SupersededParams(action="hide")).annotate(ask(), ranking, store)

    assert kept(notes, ranking.ids)
