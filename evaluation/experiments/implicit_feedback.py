"""What readers show of an answer without a word of judgement: signals that need no label.

- *Rephrased*: the session asked the same in other words within a minute, and no memory is in both answers. The first
  answer did not help (Hassan, Shi, Craswell and Ramsey, CIKM 2013). It is found when queries are recorded, while their
  words are there, and kept as `QueryRecord.rephrased_by`.
- *Opened and not cited*: a memory was opened, and ten minutes later its reader had not cited, linked or confirmed it.
  Clicks that satisfy say more than others (Chapelle, Joachims, Radlinski and Yue, TOIS 2012). Readers who cite nothing
  show nothing by not citing, so that an opening loses its credit only where another memory was cited: it was *passed
  over*.
- *Unused*: ten minutes later nothing of the answer was used. That may mean that it said all there was to know (good
  abandonment: Li, Huffman and Tokuda, SIGIR 2009), so that it speaks against nobody.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from speckit_memory.memory.store.evaluation.records import QueryRecord, UseRecord

WINDOW_SECONDS = 600.0
"""Time that a reader has to use what was served, and to cite what was opened or another memory instead."""


@dataclass(frozen=True, slots=True)
class ImplicitFeedback:
    """The signals on the served answers of some queries.

    `rephrased` and `unused` name queries; `opened_not_cited`, and `passed_over` among these, name memories, each as
    (query, memory).
    """

    rephrased: frozenset[str] = frozenset()
    opened_not_cited: frozenset[tuple[str, int]] = frozenset()
    passed_over: frozenset[tuple[str, int]] = frozenset()
    unused: frozenset[str] = frozenset()

    def earns(self, use: UseRecord) -> bool:
        """Whether a use speaks for who brought the memory. Citing, linking and confirming always do; an opening does
        not where the question was rephrased or something else was cited."""
        in_vain = use.query in self.rephrased or (use.query, use.memory) in self.passed_over
        return use.use != "opened" or not in_vain


NO_FEEDBACK = ImplicitFeedback()
"""No signals: every use counts."""


@dataclass(frozen=True, slots=True)
class FeedbackCounts:
    """How often each signal was seen: answers rephrased and unused, and memories opened and not cited or passed over,
    these by who brought them: "control", "variant" or "both", or "served" for answers that were not mixed."""

    rephrased: int = 0
    opened_not_cited: Mapping[str, int] = field(default_factory=dict)
    passed_over: Mapping[str, int] = field(default_factory=dict)
    unused: int = 0

    def __str__(self) -> str:
        """All signals that were seen, in a line; "" for none."""
        by_team = (("opened and not cited", self.opened_not_cited), ("passed over for others", self.passed_over))
        return ", ".join(
            (
                *([f"{self.rephrased:,} rephrased"] if self.rephrased else []),
                *([f"{self.unused:,} without a use"] if self.unused else []),
                *(
                    f"{sum(teams.values()):,} {signal} ({', '.join(f'{team} {n:,}' for team, n in teams.items())})"
                    for signal, teams in by_team
                    if teams
                ),
            )
        )


NO_COUNTS = FeedbackCounts()


def implicit_feedback(queries: Iterable[QueryRecord], uses: Sequence[UseRecord], *, now: float) -> ImplicitFeedback:
    """The signals on these queries at `now` (epoch seconds). `uses` are those of all queries: what was cited of another
    answer of the session counts too."""
    asked = {query.id: query for query in queries}
    used = {use.query for use in uses}
    cited: dict[str, set[int]] = {}
    """Memories by query, and by session where that is known."""
    moments: dict[str, list[float]] = {}
    """When each session cited something, in order."""
    for use in sorted(uses, key=lambda one: one.at):
        if use.use != "opened":
            cited.setdefault(use.query, set()).add(use.memory)
            if use.session:
                cited.setdefault(use.session, set()).add(use.memory)
                moments.setdefault(use.session, []).append(use.at)
    not_cited, passed_over = set(), set()
    for use in uses:
        if use.use != "opened" or use.query not in asked:
            continue
        if use.memory in cited.get(use.query, ()) or use.memory in cited.get(use.session, ()):
            continue
        session = moments.get(use.session, [])
        # the first citation of the session from the opening on
        place = bisect_left(session, use.at)
        is_passed_over = use.query in cited or any(at - use.at <= WINDOW_SECONDS for at in session[place : place + 1])
        if is_passed_over:
            passed_over.add((use.query, use.memory))
        if is_passed_over or now - use.at >= WINDOW_SECONDS:
            not_cited.add((use.query, use.memory))
    return ImplicitFeedback(
        rephrased=frozenset(query.id for query in asked.values() if query.rephrased_by),
        opened_not_cited=frozenset(not_cited),
        passed_over=frozenset(passed_over),
        unused=frozenset(
            query.id for query in asked.values() if query.id not in used and now - query.at >= WINDOW_SECONDS
        ),
    )


def feedback_counts(feedback: ImplicitFeedback, teams: Mapping[str, Mapping[int, str]]) -> FeedbackCounts:
    """The signals counted, by the teams of mixed answers."""

    def by_team(memories: Iterable[tuple[str, int]]) -> dict[str, int]:
        counted = Counter(teams.get(query, {}).get(memory, "served") for query, memory in memories)
        return dict(sorted(counted.items()))

    return FeedbackCounts(
        len(feedback.rephrased),
        by_team(feedback.opened_not_cited),
        by_team(feedback.passed_over),
        len(feedback.unused),
    )
