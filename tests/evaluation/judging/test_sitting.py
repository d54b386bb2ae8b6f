from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.evaluation.experiments.experiment_evidence import FEWEST, AnsweredQuery, metrics_with_evidence
from speckit_memory.evaluation.judging.session import JudgingCase, JudgingSession, disputes, verdict_of
from speckit_memory.evaluation.statistics.distinct_queries import lot


def case(number: int, control: str, variant: str, **judged: float) -> JudgingCase:
    return JudgingCase(f"q{number}", "text", tuple(control), tuple(variant), judged)


def test_what_could_change_the_verdict_most_comes_first_and_what_both_agree_on_never() -> None:
    found = disputes([case(1, "abc", "bac"), case(2, "abc", "abc"), case(3, "abc", "xbc")], seed=1)
    assert [(one.case.query, one.key) for one in found[:2]] in ([("q3", "a"), ("q3", "x")], [("q3", "x"), ("q3", "a")])
    assert {(one.case.query, one.key) for one in found[2:]} == {("q1", "a"), ("q1", "b")}
    assert {one.key: one.weight > 0 for one in found[:2]} == {"a": False, "x": True}


def test_live_queries_come_by_lot_and_each_is_asked_for_to_its_end() -> None:
    cases = [case(number, "abc", "bac" if number % 2 else "xbc") for number in range(20)]
    asked = [one.case.query for one in disputes(cases, seed=1, live=True)]
    whole = list(dict.fromkeys(asked))
    assert asked == [query for query in whole for _ in range(2)]
    assert whole == sorted(whole, key=lot), "not the weightier queries first, which say nothing of the others"
    weightier = [number for number, query in enumerate(whole) if int(query[1:]) % 2 == 0]
    assert weightier != list(range(10))


def test_a_judged_document_is_not_asked_for_again() -> None:
    assert [one.key for one in disputes([case(1, "abc", "xbc", a=0.0)], seed=1)] == ["x"]


def test_a_closed_verdict_is_the_one_that_any_further_labels_would_give() -> None:
    cases = [case(number, "ab", "ba", a=3.0, b=0.0) for number in range(60)] + [case(99, "ab", "ba")]
    sitting = JudgingSession(cases)
    assert len(sitting) == 2
    assert sitting.closed == "worse"
    assert sitting.present is None
    pairs = [("q99", "a"), ("q99", "b")]
    for grades in product((0.0, 1.0, 2.0, 3.0), repeat=2):
        assert verdict_of(cases, dict(zip(pairs, grades, strict=True))) == "worse"


def test_a_live_verdict_is_that_of_a_report_which_leaves_out_what_is_not_judged() -> None:
    cases = [case(number, "ab", "ba") for number in range(60)]
    fixed, live = JudgingSession(cases), JudgingSession(cases, live=True)
    for sitting in (fixed, live):
        while (pair := sitting.present) is not None:
            sitting.say(3 if pair.key == "b" else 0)
        assert sitting.closed == "better"
    assert live.verdict() == "better"
    few = JudgingSession(cases, live=True)
    for _ in range(15):
        few.say(0)
    assert few.verdict() is None, "fewer than ten queries are judged"


@settings(max_examples=examples(0.07))
@given(st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=1, max_size=6))
def test_taking_back_leads_to_where_one_was(grades: list[int | None]) -> None:
    cases = [case(number, "abc", "cab") for number in range(4)]
    sitting = JudgingSession(cases)
    before = sitting.present
    for grade in grades:
        sitting.say(grade)
    assert len(sitting.labels) == sum(grade is not None for grade in grades)
    assert all(sitting.undo() for _ in grades)
    assert not sitting.undo()
    assert (sitting.present, sitting.labels) == (before, [])


@pytest.mark.requirement("P5.reciprocal")
def test_a_judge_of_a_live_experiment_is_asked_for_all_that_a_reciprocal_rank_needs() -> None:
    cases = [case(number, "abcdefg", ("acbdefg", "abcedfg", "bacdefg", "abcdegf")[number % 4]) for number in range(48)]
    sitting = JudgingSession(cases, live=True)
    while (pair := sitting.present) is not None:
        sitting.say(3 if pair.key == "b" else 0)
    judged = dict(sitting.judged())
    answers = [AnsweredQuery(lot(one.query), one.control, one.variant, judged.get(one.query, {})) for one in cases]
    found = {one.metric: one for one in metrics_with_evidence(answers, "judgements")}
    assert len(found["MRR@5"].column) >= FEWEST
    # where 'b' is the first that is relevant, 2 against 3 and 2 against 1; 'abcedfg' decides below it
    assert {round(float(one), 4) for one in found["MRR@5"].column} <= {-0.1667, 0.5, 0.0}
    assert np.count_nonzero(found["MRR@5"].column) > 0


def test_what_both_begin_with_is_asked_for_last_and_not_below_what_is_known_to_be_relevant() -> None:
    asked = [one.key for one in disputes([case(1, "abcd", "abdc")], seed=1, live=True)]
    assert (set(asked[:2]), asked[2:]) == ({"c", "d"}, ["a", "b"]) or (set(asked[:2]), asked[2:]) == (
        {"c", "d"}, ["b", "a"],
    )  # fmt: skip
    assert {one.key for one in disputes([case(1, "abcd", "abdc", a=2.0)], seed=1, live=True)} == {"c", "d"}
    assert {one.key for one in disputes([case(1, "abcd", "abdc")], seed=1)} == {"c", "d"}
