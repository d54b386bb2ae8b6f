"""Interleaving: which of two pipelines do readers choose from, when one answer mixes both?

In team-draft interleaving both pipelines take turns to add their best memory that is not in the answer yet (Radlinski,
Kurup and Joachims, CIKM 2008). Each query is a duel: the team with more used memories wins, where openings that led to
nothing do not count (`implicit_feedback`). A common prefix of both rankings belongs to neither. Uses of an answer of
one pipeline can only support that pipeline; duels can also show a variant to be worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from speckit_memory.evaluation.experiments.implicit_feedback import NO_FEEDBACK, ImplicitFeedback
from speckit_memory.evaluation.statistics.comparison import ALPHA, Verdict
from speckit_memory.evaluation.statistics.sequential import (
    anytime_interval,
    anytime_p,
    minimum_detectable_effect,
    queries_needed,
)
from speckit_memory.memory.store.evaluation.records import UseRecord

Team = Literal["control", "variant", "both"]
"""The pipeline that contributed a memory; "both" in the common prefix of the rankings."""

Teams = Mapping[str, Mapping[int, Team]]
"""The team of every memory in interleaved answers, by query id and memory id."""


@dataclass(frozen=True, slots=True)
class Duels:
    """The outcome of the duels over `queries` interleaved answers.

    `used` of them had a used memory; both teams earned the same on `ties` of these. `lead` is the share of all queries
    that the variant won minus the share that the control won. `ci95`, `p` and the verdict on the variant are
    anytime-valid. `queries_needed`: only when undecided, about how many interleaved queries in total would settle a
    lead of this size. `minimum_detectable_effect`: the lead that `queries` queries would probably show.
    """

    queries: int
    used: int
    variant_wins: int
    control_wins: int
    lead: float
    ci95: tuple[float, float]
    p: float
    verdict: Verdict
    queries_needed: int | None
    minimum_detectable_effect: float | None
    ENTRIES: ClassVar = {"ties": "ties"}

    @property
    def ties(self) -> int:
        """The number of queries with a use that neither team won."""
        return self.used - self.variant_wins - self.control_wins


def judge_duels(
    teams: Teams, uses: Iterable[UseRecord], *, variants: int, feedback: ImplicitFeedback = NO_FEEDBACK
) -> Duels | None:
    """Judges all interleaved queries, as one of `variants` variants; None without interleaved queries.

    A memory earns one point, however often it is used, and none for an opening that `feedback` discredits.

    Args:
        teams: The pipeline that contributed each memory.
        uses: Uses of the served memories.
        variants: Number of variants that the verdict is corrected for.
        feedback: Which uses earn a point.

    Returns:
        The duels with their verdict.
    """
    if not teams:
        return None
    chosen = [use for use in uses if use.memory in teams.get(use.query, {})]
    credit = {query: {"control": 0, "variant": 0, "both": 0} for query in teams}
    for query, memory in {(use.query, use.memory) for use in chosen if feedback.earns(use)}:
        credit[query][teams[query][memory]] += 1
    # outcome: (queries,) float64, 1 where the variant won, -1 where the control won, 0 for a tie
    outcome = np.array([np.sign(earned["variant"] - earned["control"]) for earned in credit.values()], np.float64)
    lead, p, alpha = float(outcome.mean()), anytime_p(outcome), ALPHA / variants
    verdict: Verdict = "undecided" if p >= alpha else "better" if lead > 0 else "worse"
    # no margin: a duel between equals ends undecided, never as "same"
    needed = queries_needed(outcome, alpha=alpha, margin=None, made=outcome) if verdict == "undecided" else None
    return Duels(
        queries=len(outcome),
        used=len({use.query for use in chosen}),
        variant_wins=int((outcome > 0).sum()),
        control_wins=int((outcome < 0).sum()),
        lead=lead,
        ci95=anytime_interval(outcome, level=1 - alpha),
        p=p,
        verdict=verdict,
        queries_needed=needed,
        minimum_detectable_effect=minimum_detectable_effect(outcome, alpha=alpha),
    )
