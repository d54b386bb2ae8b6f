"""Which of two pipelines do readers choose from, when one answer mixes both?

In team-draft interleaving both pipelines take turns to put their best memory that is not there yet into one answer
(Radlinski, Kurup and Joachims, CIKM 2008). Each query is a duel: the team whose memories are used more wins it, where
openings in vain do not count (`implicit_feedback`). What both rank alike from the top on belongs to neither. Unlike
uses of an answer of one pipeline, which can only speak for what that pipeline served, these tell better from worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from speckit_memory.evaluation.experiments.implicit_feedback import NO_FEEDBACK, ImplicitFeedback
from speckit_memory.evaluation.statistics.comparison import ALPHA, Verdict
from speckit_memory.evaluation.statistics.sequential import (
    anytime_interval,
    anytime_p,
    minimum_detectable_effect,
    queries_needed,
)
from speckit_memory.evaluation.statistics.tables import rounded
from speckit_memory.memory.store.evaluation.records import UseRecord

Team = Literal["control", "variant", "both"]
"""Whose memory it is: that of the pipeline that put it there, or of both where they rank alike down to it."""

Teams = Mapping[str, Mapping[int, Team]]
"""By query and by memory, both by id, of everything that interleaved answers brought."""


@dataclass(frozen=True, slots=True)
class Duels:
    """How the duels of `queries` interleaved answers went.

    `used` of them had a memory that was used; both teams earned the same, or nothing, on `ties` of these. `lead` is
    the share of all queries that the variant won minus the share that the control won, `ci95` and `p` hold at every
    look at once, and so does the verdict, which is about the variant. `queries_needed`: only when undecided, about how
    many interleaved queries in all would settle a lead of this size; `minimum_detectable_effect`: the lead that so many
    queries would probably show.
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

    @property
    def ties(self) -> int:
        """The queries with a use that neither won."""
        return self.used - self.variant_wins - self.control_wins

    def as_json(self) -> dict[str, Any]:
        """The duels as they stand in a report."""
        return {**rounded(asdict(self)), "ties": self.ties}


def judge_duels(
    teams: Teams, uses: Iterable[UseRecord], *, variants: int, feedback: ImplicitFeedback = NO_FEEDBACK
) -> Duels | None:
    """The outcome of all interleaved queries, judged as one of so many variants; None where there are none. A memory
    earns once, however often used, and not by being opened in vain, as `feedback` says."""
    if not teams:
        return None
    chosen = [use for use in uses if use.memory in teams.get(use.query, {})]
    credit = {query: {"control": 0, "variant": 0, "both": 0} for query in teams}
    for query, memory in {(use.query, use.memory) for use in chosen if feedback.earns(use)}:
        credit[query][teams[query][memory]] += 1
    outcome = np.array([np.sign(earned["variant"] - earned["control"]) for earned in credit.values()], np.float64)
    lead, p, alpha = float(outcome.mean()), anytime_p(outcome), ALPHA / variants
    verdict: Verdict = "undecided" if p >= alpha else "better" if lead > 0 else "worse"
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
