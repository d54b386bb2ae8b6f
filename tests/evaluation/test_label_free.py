"""What judgements can change at most, and what follows before there are any."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from speckit_memory.evaluation.statistics.label_free import label_free
from speckit_memory.evaluation.statistics.metrics import evaluate
from speckit_memory.memory.store.evaluation.records import AnswerRecord, QueryRecord, RecordedPair, VariantRecord

METRICS = ("nDCG@10", "MRR@5")


def pair(control: list[int], variant: list[int]) -> RecordedPair:
    query = QueryRecord("q", 1.0, "", "", "", "auto", 10, 1, "", "s", 0)
    first, second = (AnswerRecord("a", tuple(keys), (0.5,) * len(keys), 5.0) for keys in (control, variant))
    return RecordedPair(query, first, VariantRecord("shadow", second))


def most(control: list[int], variant: list[int]) -> dict[str, float]:
    return {one.metric: one.mean for one in label_free([[pair(control, variant)]], 0, alpha=0.05)}


def difference(control: list[int], variant: list[int], grades: dict[str, float]) -> dict[str, float]:
    before, after = (evaluate([[str(key) for key in keys]], [grades]) for keys in (control, variant))
    return {metric: abs(float(after[metric][0] - before[metric][0])) for metric in METRICS}


@pytest.mark.requirement("P5.sentence")
def test_no_judgements_make_two_answers_differ_by_more_and_some_by_as_much() -> None:
    chance = np.random.default_rng(3)
    for _ in range(15):
        documents = chance.permutation(14).tolist()
        control = documents[: chance.integers(1, 12)]
        variant = chance.permutation(documents)[: chance.integers(1, 12)].tolist()
        bound = most(control, variant)
        for _ in range(15):
            grades = {str(key): float(grade) for key, grade in enumerate(chance.choice([0, 0, 1, 3], 14))}
            if any(grades.values()):
                found = difference(control, variant, grades)
                assert all(found[metric] <= bound[metric] + 1e-9 for metric in METRICS)


def test_the_bound_of_four_documents_is_that_of_the_worst_judgements() -> None:
    sets = [{str(key): 1.0 for key in range(4) if chosen >> key & 1} for chosen in range(1, 16)]
    for variant in permutations(range(4)):
        found = [difference([0, 1, 2, 3], list(variant), grades) for grades in sets]
        bound = most([0, 1, 2, 3], list(variant))
        assert {metric: max(one[metric] for one in found) for metric in METRICS} == pytest.approx(bound)


def test_what_stands_below_the_ranks_that_count_changes_nothing() -> None:
    ranks = list(range(20))
    assert most(ranks, [*ranks[:10], *ranks[:9:-1]]) == {"nDCG@10": 0.0, "MRR@5": 0.0}
    assert most(ranks, [*ranks[:5], 6, 5, *ranks[7:]])["MRR@5"] == 0.0


@pytest.mark.requirement("P5.sentence")
def test_rare_changes_that_no_query_has_shown_are_allowed_for() -> None:
    swapped = pair([1, 2], [2, 1])
    few, many = (label_free([[swapped]], alike, alpha=0.05)[0] for alike in (299, 2_999))
    assert 0.012 < few.bound < 0.02, "three of 300 are what 300 without any leave possible"
    assert many.bound < few.bound / 5
    assert few.mean == pytest.approx(10 * many.mean)


def test_before_anything_is_judged_queries_are_counted_by_the_share_that_differs() -> None:
    swapped = [[pair([1, 2, 3], [3, 2, 1])]] * 30
    often, seldom = (label_free(swapped, alike, alpha=0.05)[0] for alike in (30, 270))
    assert [often.planned, seldom.planned] == pytest.approx([0.02, 0.0125])
    assert often.queries_needed is not None
    assert seldom.queries_needed is not None
    assert often.queries_needed / seldom.queries_needed == pytest.approx(5 / 2.56, rel=0.1)  # variance over mean²
