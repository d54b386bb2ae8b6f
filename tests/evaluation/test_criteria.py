"""Whether a comparison meets the criterion of a flag: every direction, and what is missing in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

import pytest

from speckit_memory.config.flags.criterion import Condition, criterion_of
from speckit_memory.config.flags.flag import Flag
from speckit_memory.config.yaml.reader import read
from speckit_memory.errors import Where
from speckit_memory.evaluation.experiments.criteria import Figure, promotion_lacks, unmet

pytestmark = pytest.mark.requirement("P11.evidence")


@dataclass(frozen=True)
class Shown:
    differences: Mapping[str, Figure] = field(default_factory=dict)
    owns: Mapping[str, Figure] = field(default_factory=dict)

    def difference(self, metric: str) -> Figure | None:
        return self.differences.get(metric)

    def own(self, metric: str) -> Figure | None:
        return self.owns.get(metric)


def difference(metric: str, figure: Figure) -> Shown:
    return Shown({metric: figure})


NOT_WORSE = Condition("nDCG@10", "not_worse", 0.005, 200)
BETTER = Condition("nDCG@10", "better", 0.0, 200)


@pytest.mark.parametrize(
    ("condition", "figures", "told"),
    [
        (NOT_WORSE, difference("nDCG@10", Figure(0.0, 200, (-0.005, 0.01))), []),
        (NOT_WORSE, difference("nDCG@10", Figure(0.0, 50, (-0.012, 0.01))),
         ["nDCG@10 not worse by 0.005 over 200 queries: needs 200 queries, has 50, nDCG@10 interval reaches -0.012, "
          "margin is 0.005"]),
        (NOT_WORSE, Shown(), ["nDCG@10 not worse by 0.005 over 200 queries: it has no figure for nDCG@10"]),
        (BETTER, difference("nDCG@10", Figure(0.02, 200, (0.001, 0.04), 0.01)), []),
        (BETTER, difference("nDCG@10", Figure(0.02, 200, (0.0, 0.04), 0.06)),
         ["nDCG@10 better over 200 queries: nDCG@10 interval reaches +0, it must lie beyond +0, p after correction is "
          "0.06, below 0.05 is needed"]),
        (Condition("p95_ms", "better", 0, 1), difference("p95_ms", Figure(-3.0, 9)), []),
        (Condition("p95_ms", "better", 5, 1), difference("p95_ms", Figure(-3.0, 9)),
         ["p95_ms better by 5 over 1 queries: p95_ms differs by -3, it must lie beyond -5"]),
        (Condition("p95_ms", "not_worse", 2, 1), difference("p95_ms", Figure(2.5, 9)),
         ["p95_ms not worse by 2 over 1 queries: p95_ms differs by +2.5, margin is 2"]),
        (Condition("overlap@10", "at_least", 0.95, 1), Shown(owns={"overlap@10": Figure(0.95, 9)}), []),
        (Condition("overlap@10", "at_least", 0.95, 1), Shown(owns={"overlap@10": Figure(0.9, 9)}),
         ["overlap@10 at least 0.95 over 1 queries: overlap@10 is 0.9, at least 0.95 is needed"]),
        (Condition("ordering_differences", "at_most", 0, 1), Shown(owns={"ordering_differences": Figure(3, 9)}),
         ["ordering_differences at most 0 over 1 queries: ordering_differences is 3, at most 0 is accepted"]),
        (Condition("overlap@10", "at_least", 0.95, 1), Shown(owns={"overlap@10": Figure(0.96, 9, (0.94, 0.98))}),
         ["overlap@10 at least 0.95 over 1 queries: overlap@10 interval reaches 0.94, at least 0.95 is needed"]),
        (Condition("overlap@10", "at_least", 0.9, 1), Shown(owns={"overlap@10": Figure(0.96, 9, (0.94, 0.98))}), []),
        (Condition("p95_ms", "at_most", 100, 1), Shown(owns={"p95_ms": Figure(90.0, 9, (80.0, 110.0))}),
         ["p95_ms at most 100 over 1 queries: p95_ms interval reaches 110, at most 100 is accepted"]),
        (BETTER, difference("nDCG@10", Figure(0.02, 200, (0.001, 0.04))),
         ["nDCG@10 better over 200 queries: it has no p for nDCG@10"]),
    ],
)  # fmt: skip
def test_a_condition_is_met_or_what_it_lacks_is_told(condition: Condition, figures: Shown, told: list[str]) -> None:
    assert unmet([condition], figures) == told


WITHIN = Figure(-0.004, 400, (-0.009, -0.001), 0.01)
"""A loss beyond chance that the margins of criteria allow."""
ALIKE = Figure(0.0, 400, (-0.004, 0.004), 1.0)


@pytest.mark.requirement("P11.loss")
@pytest.mark.parametrize(
    ("metric", "figure", "lost"),
    [
        ("nDCG@10", WITHIN, True),
        ("MRR@5", WITHIN, True),  # which the criterion does not name, and every report tests
        ("Recall@20", WITHIN, False),  # neither named nor tested
        ("nDCG@10", replace(WITHIN, p=0.06), False),  # chance after correction
        ("nDCG@10", replace(WITHIN, interval=(-0.009, 0.0)), False),
        ("MRR@5", replace(WITHIN, interval=(-inf, -0.001)), False),  # uses show no loss
        ("nDCG@10", replace(ALIKE, verdict="worse"), True),  # what the report said holds
        ("nDCG@10", replace(WITHIN, verdict="undecided"), False),
    ],
)
def test_no_margin_excuses_a_loss_beyond_chance(metric: str, figure: Figure, lost: bool) -> None:
    criterion = Condition("nDCG@10", "not_worse", 0.02, 300)
    told = [f"it shows {metric} to be worse ({figure.value:+.4f}), which no margin excuses"]
    assert unmet([criterion], Shown({"nDCG@10": ALIKE, metric: figure})) == (told if lost else [])


@pytest.mark.requirement("P11.gain")
@pytest.mark.parametrize(
    ("criterion", "shown", "reason", "enough"),
    [
        ([NOT_WORSE], {}, "", False),
        ([NOT_WORSE], {}, "It keeps answers short.", True),
        ([NOT_WORSE], {"p95_ms": Figure(-4.0, 400, (-6.0, -1.0))}, "", True),
        ([NOT_WORSE], {"p95_ms": Figure(-4.0, 400, (-6.0, 1.0))}, "", False),
        ([NOT_WORSE], {"Hit@1": Figure(0.02, 400, (0.01, 0.03), 0.01)}, "", True),
        ([NOT_WORSE], {"Hit@1": Figure(0.02, 400, (0.01, 0.03), 0.2)}, "", False),
        ([NOT_WORSE, Condition("Hit@1", "better")], {"Hit@1": Figure(0.02, 400, (0.01, 0.03), 0.01)}, "", True),
        ([Condition("nDCG@10", "at_least", 0.0)], {}, "", True),  # asks for a figure of its own
    ],
)
def test_what_only_rules_out_a_loss_needs_a_gain_or_a_reason(
    criterion: list[Condition], shown: Mapping[str, Figure], reason: str, enough: bool
) -> None:
    place = Where("flags.yaml", 1, 1)
    flag = Flag("SPECKIT_X", "shadow", place, place, criterion=tuple(criterion), decision={"reason": reason})
    figures = Shown({"nDCG@10": ALIKE, **shown}, {"nDCG@10": Figure(0.5, 400)})
    assert (promotion_lacks(flag, figures) == []) is enough


def test_all_conditions_must_hold() -> None:
    shown = Shown({"nDCG@10": Figure(0.0, 200, (-0.001, 0.001))}, {"rbo": Figure(0.5, 300)})
    (told,) = unmet([NOT_WORSE, Condition("rbo", "at_least", 0.9)], shown)
    assert told.startswith("rbo at least 0.9")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("3", "1:1: E114 a criterion must be a mapping such as {metric: nDCG@10, direction: not_worse, margin: 0.005, "
         "queries: 200}; found 3"),
        ("[]", "1:1: E114 a criterion has 1 to 8 conditions; found 0"),
        ("{metric: nDCG, direction: better}",
         "1:10: E114 'metric' is 'nDCG'; did you mean 'nDCG@10'?"),
        ("{metric: rbo, direction: better}",
         "1:26: E114 the direction of a criterion is 'better'; accepted: at_least, at_most"),
        ("{metric: rbo, direction: at_least}",
         "1:1: E114 'at_least' needs the key 'margin', the limit of the figure"),
        ("{metric: rbo, direction: at_least, margin: -1}", "1:44: E114 'margin' must be a number from 0; found -1"),
        ("{metric: Hit@1, direction: better, queries: 0}",
         "1:45: E114 'queries' must be a whole number from 1 to 1,000,000; found 0"),
        ("{metric: Hit@1, direction: better, querys: 1}",
         "1:36: E115 a criterion has no key 'querys'; did you mean 'queries'?"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_criterion_is_told_at_its_place(text: str, told: str) -> None:
    node, _ = read(text, "f")
    assert node is not None
    conditions, problems = criterion_of(node)
    assert conditions == ()
    assert [str(problem) for problem in problems] == [f"f:{told}"]
