"""Preferences between two answers to a query, given without knowing which pipeline made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from speckit_memory.evaluation.judging.session import JudgingCase
from speckit_memory.evaluation.statistics.comparison import ALPHA, Verdict
from speckit_memory.evaluation.statistics.distinct_queries import lot
from speckit_memory.evaluation.statistics.sequential import anytime_interval, anytime_p
from speckit_memory.memory.store.evaluation.records import StoredEvaluation
from speckit_memory.pipeline.ports import Column

KIND = "preferences"
SHOWN = 5
"""Number of documents shown of each answer."""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """Two different answers to one query; `variant_first` says which one is shown first."""

    case: JudgingCase
    variant_first: bool

    @property
    def lists(self) -> tuple[Sequence[str], Sequence[str]]:
        """The keys of both answers in the order in which they are shown."""
        control, variant = self.case.control[:SHOWN], self.case.variant[:SHOWN]
        return (variant, control) if self.variant_first else (control, variant)


class PreferenceSession:
    """The queries with different answers, in the order of lots, and the preferences given.

    A preference is 1 for the variant, -1 for the control and 0 for neither. `known` holds earlier preferences by query.
    The verdict is anytime-valid (`sequential`): it may be read after every query.
    """

    def __init__(self, cases: Sequence[JudgingCase], known: Mapping[str, float]) -> None:
        self.preferences = dict(known)
        self._alike = [case.query for case in cases if case.control[:SHOWN] == case.variant[:SHOWN]]
        differing = [case for case in cases if case.control[:SHOWN] != case.variant[:SHOWN]]
        drawn = sorted(differing, key=lambda case: lot(case.query))
        # One bit of a digest decides which answer is shown first.
        # the order depends on the query alone, so that a judge cannot learn it from other queries
        self._pairs = [AnswerPair(case, sha256(case.query.encode()).digest()[0] % 2 == 0) for case in drawn]
        self._open = [pair for pair in self._pairs if pair.case.query not in known]
        self._said: list[float | None] = []

    def __len__(self) -> int:
        """The initial number of queries to judge."""
        return len(self._open)

    @property
    def said(self) -> int:
        """The number of queries judged or skipped."""
        return len(self._said)

    @property
    def present(self) -> AnswerPair | None:
        """The answers to judge next; None when none are left, or when there is a verdict."""
        if len(self._said) >= len(self._open) or self.verdict in ("better", "worse"):
            return None
        return self._open[len(self._said)]

    def say(self, preference: float | None) -> None:
        """Records the preference for the present answers: 1 the variant's, -1 the control's, 0 neither; None skips
        them."""
        if preference is not None:
            self.preferences[self._open[len(self._said)].case.query] = preference
        self._said.append(preference)

    def undo(self) -> AnswerPair | None:
        """Removes the last preference and returns its answers; None when there is none."""
        if not self._said:
            return None
        self._said.pop()
        self.preferences.pop(self._open[len(self._said)].case.query, None)
        return self._open[len(self._said)]

    @property
    def queries(self) -> list[str]:
        """The queries that count: those judged, and the same share of those with equal answers."""
        judged = [pair.case.query for pair in self._pairs if pair.case.query in self.preferences]
        # Equal answers enter in proportion: with half of the pairs judged, half of them count.
        alike = round(len(self._alike) * len(judged) / len(self._pairs)) if self._pairs else len(self._alike)
        return [*judged, *self._alike[:alike]]

    @property
    def values(self) -> Column:
        """float64: the preference on each of `queries`, 0 where the answers are the same."""
        return np.array([self.preferences.get(query, 0.0) for query in self.queries])

    def evaluation(self, pipelines: Sequence[tuple[str, str]], origin: str, at: float) -> StoredEvaluation:
        """The preferences as a comparison that a flag may cite.

        `pipelines` are the names and hashes of control and variant; `origin` names the source of the queries.
        """
        values = {"control": [0.0] * len(self.queries), "variant": self.values.tolist()}
        document = {
            "pipelines": [
                {"name": role, "pipeline": name, "hash": hashed}
                for role, (name, hashed) in zip(values, pipelines, strict=True)
            ],
            "per_query": {
                "queries": self.queries,
                "values": {role: {"interleaving": column} for role, column in values.items()},
            },
        }
        digest = sha256("\0".join((*sorted(self.queries), *(hashed for _, hashed in pipelines))).encode()).hexdigest()
        return StoredEvaluation(
            sha256(f"{KIND} {digest}".encode()).hexdigest()[:12], KIND, at, origin, digest[:16], document
        )

    @property
    def interval(self) -> tuple[float, float]:
        """The anytime-valid 95 % interval of the mean preference over all queries."""
        return anytime_interval(self.values)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the variant by the preferences so far."""
        values = self.values
        # anytime_p may be read after every preference: its error rate holds at all looks together.
        if not len(values) or anytime_p(values) >= ALPHA:
            return "undecided"
        return "better" if values.mean() > 0 else "worse"
