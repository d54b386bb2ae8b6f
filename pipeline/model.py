"""What flows between the stages: frozen columns. One page in docs/datamodel.md explains them.

Row objects exist only at the edge. Every array is aligned with `ids`. The total order everywhere is score descending,
then id ascending; NaN is no score. The rank of a hit is 1 + the number of strictly better hits of its search: equal
scores share a rank (1, 1, 3). Ids order rows that are equal; they never enter a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.ports import Column, Filter, Ids, Level
from pipeline.scales import Scale

Mode = Literal["auto", "quick", "deep", "focused", "resume"]
Complexity = Literal["simple", "moderate", "complex"]
Ranks = NDArray[np.int32]
Mask = NDArray[np.bool_]

NO_RANK = -1


def total_order(scores: Column, ids: Ids) -> NDArray[np.intp]:
    """Row numbers by score descending, then id ascending."""
    return np.lexsort((ids, -scores))


@dataclass(frozen=True, slots=True)
class Plan:
    """What query understanding made of a query; steps return changed copies of it.

    `channels` limits the declared channels (None: all of them); `limits` overrides channel limits; `variants` holds
    the texts to search, the query itself first; `reasons` says, a line each, why the plan looks as it does.

    `mode` replaces the query's own (feature C17); `importance_boost` is added to the importance of matches (C16);
    `folders` narrows the scope to these folders (C13). When no channel found anything, a recoverer may relax
    `min_similarity` and raise `limit_factor`; `attempt` counts how often (C14).
    """

    intent: str = "understand"
    intent_confidence: float = 0.0
    complexity: Complexity = "complex"
    channels: tuple[str, ...] | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    variants: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    mode: Mode | None = None
    importance_boost: float = 0.0
    folders: tuple[str, ...] = ()
    min_similarity: float | None = None
    limit_factor: float = 1.0
    attempt: int = 0

    def because(self, reason: str) -> tuple[str, ...]:
        """The reasons with one more."""
        return (*self.reasons, reason)


@dataclass(frozen=True, slots=True)
class Query:
    """One question. Time, limit, deadline and session travel here: no component reads a clock or a random source.

    `now` is in epoch seconds; `deadline_ns` is a reading of the monotonic clock, None for no deadline. `terms` are the
    analysed tokens of the text, in order; `concepts` are texts that must all match (feature C1), none for a plain
    query; `anchors` are the only sections wanted of each memory, none for all (feature A7); `token_usage` is the share
    of the caller's context window already in use, [0, 1], None when unknown (feature C17); `dedup` is false for who
    wants to see again what the session was sent (feature A2).
    """

    text: str
    now: float
    limit: int = 10
    wanted: Filter = field(default_factory=Filter)
    mode: Mode = "auto"
    session: str = ""
    deadline_ns: int | None = None
    seed: int = 0
    terms: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    token_usage: float | None = None
    dedup: bool = True
    plan: Plan = field(default_factory=Plan)

    def planned(self, plan: Plan) -> Query:
        """The same question with another plan; the folders of the plan narrow its scope."""
        return replace(self, plan=plan, wanted=replace(self.wanted, folders=plan.folders))

    @property
    def running_mode(self) -> Mode:
        """The mode this question runs in: the plan's, else the one asked for."""
        return self.plan.mode or self.mode


@dataclass(frozen=True, slots=True)
class Hits:
    """What one channel found, in total order.

    `ids` int64[n], unique, memories or chunks as `level` says; `scores` float64[n], finite, on `scale`; `passages`
    int64[n] is the chunk that matched best, -1 where the channel cannot tell.
    """

    ids: Ids
    scores: Column
    scale: Scale
    level: Level = "memory"
    passages: Ids | None = None

    def __post_init__(self) -> None:
        check_columns(self.ids, scores=self.scores, passages=self.passages)
        ordered = self.scores[:-1] > self.scores[1:]
        tied = (self.scores[:-1] == self.scores[1:]) & (self.ids[:-1] < self.ids[1:])
        if not np.all(ordered | tied):
            raise ValueError("hits must be ordered by score descending, then id ascending")

    @classmethod
    def ordered(
        cls, ids: Ids, scores: Column, scale: Scale, *, limit: int, level: Level = "memory", passages: Ids | None = None
    ) -> Hits:
        """The best `limit` of these rows, put into total order."""
        rows = total_order(scores, ids)[:limit]
        return cls(ids[rows], scores[rows], scale, level, None if passages is None else passages[rows])

    def __len__(self) -> int:
        return len(self.ids)


def check_columns(ids: Ids, *, scores: Column, passages: Ids | None = None) -> None:
    """Raises ValueError unless the columns are aligned, the ids unique and the scores finite."""
    if ids.dtype != np.int64 or ids.ndim != 1:
        raise ValueError(f"ids must be int64[n]; found {ids.dtype}[{ids.ndim} dimensions]")
    if scores.dtype != np.float64 or scores.shape != ids.shape:
        raise ValueError(f"scores must be float64{list(ids.shape)}; found {scores.dtype}{list(scores.shape)}")
    if passages is not None and (passages.dtype != np.int64 or passages.shape != ids.shape):
        raise ValueError(f"passages must be int64{list(ids.shape)}; found {passages.dtype}{list(passages.shape)}")
    ordered = np.sort(ids)  # a fifth of the time of np.unique for the few rows there are
    if (ordered[1:] == ordered[:-1]).any():
        raise ValueError("ids must be unique")
    if not np.all(np.isfinite(scores)):
        raise ValueError("scores must be finite")


@dataclass(frozen=True, slots=True)
class Candidates:
    """The union of all channels' hits, before any score.

    `ids` ascending; `parents` the memory of each row; `passages` the matched chunk (-1 unknown). The columns are the
    searches that answered: `channels` names the channel of each, `variants` the query variant it searched (0 is the
    query itself). `raw` float64[n, columns], NaN where a search did not return the row; `rank` int32[n, columns] from
    1, equal where `raw` is equal among the hits, -1 likewise. `updated_at` is in epoch seconds, NaN where unknown.
    """

    ids: Ids
    parents: Ids
    passages: Ids
    updated_at: Column
    channels: tuple[str, ...]
    variants: tuple[int, ...]
    scales: tuple[Scale, ...]
    raw: Column
    rank: Ranks

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[np.intp], ids: Ids | None = None) -> Candidates:
        """These rows in this order, optionally under new ids."""
        return Candidates(
            self.ids[rows] if ids is None else ids,
            self.parents[rows],
            self.passages[rows],
            self.updated_at[rows],
            self.channels,
            self.variants,
            self.scales,
            self.raw[rows],
            self.rank[rows],
        )


@dataclass(frozen=True, slots=True)
class StepScore:
    """The score of every row after one step, and what the step added or multiplied.

    `kind` tells how explain recombines: "sum" (`parts` are the addends), "add", "multiply" (`parts` has the one
    column), "replace" (the step computed the score anew).
    """

    step: str
    kind: Literal["sum", "add", "multiply", "replace"]
    scale: Scale
    names: tuple[str, ...]
    parts: Column
    after: Column

    def take(self, rows: NDArray[np.intp]) -> StepScore:
        """The scores of these rows, in this order."""
        return StepScore(self.step, self.kind, self.scale, self.names, self.parts[rows], self.after[rows])


@dataclass(frozen=True, slots=True)
class Pool:
    """Scored candidates. `steps` holds one entry per step that scored, so that every score can be recombined.

    `chunk_hits` int32[n] counts the rows that were collapsed into each row.
    """

    candidates: Candidates
    steps: tuple[StepScore, ...]
    chunk_hits: NDArray[np.int32]

    @property
    def ids(self) -> Ids:
        """int64[n]: the id of each row."""
        return self.candidates.ids

    @property
    def score(self) -> Column:
        """float64[n]: the score after the last step."""
        return self.steps[-1].after

    @property
    def scale(self) -> Scale:
        """The scale of `score`."""
        return self.steps[-1].scale

    def __len__(self) -> int:
        return len(self.candidates)

    def order(self) -> NDArray[np.intp]:
        """Row numbers in total order."""
        return total_order(self.score, self.ids)

    def take(self, rows: NDArray[np.intp]) -> Pool:
        """The pool of these rows, in this order."""
        steps = tuple(step.take(rows) for step in self.steps)
        return Pool(self.candidates.take(rows), steps, self.chunk_hits[rows])


@dataclass(frozen=True, slots=True)
class Fused:
    """A fuser's answer: named addends float64[n, names] over the candidates; the frame sums them left to right."""

    names: tuple[str, ...]
    parts: Column


class Reranking:
    """What a reranker may answer: `Rescored`, `Selected` or `Grouped`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Rescored(Reranking):
    """A reranker's answer: a new score for every row of the pool, float64[n], finite."""

    scores: Column


@dataclass(frozen=True, slots=True)
class Selected(Reranking):
    """A reranker's answer: which rows stay, bool[n]."""

    keep: Mask


@dataclass(frozen=True, slots=True)
class Grouped(Reranking):
    """A reranker's answer: rows with equal `groups` (int64[n], memory ids) become one row with that id.

    `scores` float64[n] is the score of the group, equal within a group.
    """

    groups: Ids
    scores: Column


JSON = None | bool | int | float | str | list[Any] | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Notes:
    """An annotator's answer: remarks by id and about the whole answer, and optionally which rows stay.

    A remark has no way to name a score or a position: those keys are refused. Rows that are hidden `in_place` keep
    their places: nothing from below the query's limit moves up into them.
    """

    by_id: Mapping[int, Mapping[str, JSON]] = field(default_factory=dict)
    overall: Mapping[str, JSON] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    keep: Mask | None = None
    in_place: bool = False
