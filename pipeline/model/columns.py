"""The data that flows between the stages: frozen columns. One page in docs/datamodel.md explains them.

Row objects exist only at the edge. Every array is aligned with `ids`. The total order everywhere is score descending,
then id ascending; NaN means no score. The rank of a hit is 1 + the number of strictly better hits of its search: equal
scores share a rank (1, 1, 3). Ids order rows with equal scores; they never enter a score.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import matched_passages
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.model.workings import Workings
from speckit_memory.pipeline.ports import Column, Filter, Ids, Level

Mode = Literal["auto", "quick", "deep", "focused", "resume"]
Complexity = Literal["simple", "moderate", "complex"]
Confidence = Literal["high", "medium", "low", "fallback"]
Order = Literal["", "newest", "oldest"]
Ranks = NDArray[np.int32]
Mask = NDArray[np.bool_]

NO_RANK = -1
INTENTS = ("add_feature", "fix_bug", "refactor", "security_audit", "understand", "find_spec", "find_decision")
"""The intents of queries (feature C8). If two have equal evidence, the first in this list applies."""


def total_order(scores: Column, ids: Ids) -> NDArray[np.intp]:
    """Row numbers by score descending, then id ascending."""
    return np.lexsort((ids, -scores))


@dataclass(frozen=True, slots=True)
class Respelling:
    """A replacement for a word that no memory holds.

    `word` is the typed word and `term` its token; `instead` maps the replacement terms to their weights, (0, 1],
    likeliest first, and `reading` is the word that was probably intended.
    """

    word: str
    term: str
    instead: Mapping[str, float]
    reading: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of query understanding; steps return changed copies of it.

    `channels` limits the declared channels (None: all of them); `limits` overrides channel limits; `variants` holds the
    texts to search, the query itself first; `reasons` explains the plan, one line per reason.

    `mode` replaces the query's own (feature C17); `importance_boost` is added to the importance of matches (C16);
    `folders` restricts the scope to these folders (C13), `memories` to these, unless it is None (C1), and `warnings`
    names the words that could not be honoured or were left out; only the frame sets these two. `respelt` replaces words
    that no memory holds. If no channel found anything, the frame sets `asked_similarity` to the highest
    `min_similarity` of the channels, 0 if there is none. A recoverer may relax it by `min_similarity`, which replaces
    higher thresholds, and raise `limit_factor`; `attempt` counts the recoveries (C14).

    `times` are the time spans that the query names, each from one moment up to another in seconds since 1970; `order`
    is set if the query asks for the newest or oldest; `topic` holds the remaining terms, None if the query names no
    time. `counted_from` is the moment from which times such as "last week" are counted, if it is not now.

    `complexity_confidence` is "fallback" until a step has judged the complexity; the step may be missing, off or failed
    (C9). `connected` counts the memories that the causal graph connects with the query, None if that is unknown;
    `graph_gap` is set if they are too few (C15).
    """

    intent: str = "understand"
    intent_confidence: float = 0.0
    complexity: Complexity = "complex"
    complexity_confidence: Confidence = "fallback"
    connected: int | None = None
    graph_gap: bool = False
    channels: tuple[str, ...] | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    variants: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    mode: Mode | None = None
    importance_boost: float = 0.0
    folders: tuple[str, ...] = ()
    respelt: tuple[Respelling, ...] = ()
    memories: tuple[int, ...] | None = None
    times: tuple[tuple[float, float], ...] = ()
    order: Order = ""
    topic: tuple[str, ...] | None = None
    counted_from: float | None = None
    warnings: tuple[str, ...] = ()
    asked_similarity: float = 0.0
    min_similarity: float | None = None
    limit_factor: float = 1.0
    attempt: int = 0

    def because(self, reason: str) -> tuple[str, ...]:
        """The reasons with another one appended."""
        return (*self.reasons, reason)


@dataclass(frozen=True, slots=True)
class Query:
    """One query. Time, limit, deadline and session are part of it: no component reads a clock or a random source.

    `now` is in epoch seconds; `deadline_ns` is a reading of the monotonic clock, None for no deadline. `terms` are the
    analysed tokens of the text, in order, with misspelt ones replaced by the plan; `concepts` are texts that must all
    match (feature C1), none for a plain query; `anchors` are the only sections returned of each memory, none for all
    (feature A7). `required` are the quoted words and phrases that a memory must hold, `excluded` those that it must
    not. `token_usage` is the share of the caller's context window already in use, [0, 1], None if unknown (feature
    C17); `dedup` is false to return memories again that the session was already sent (feature A2). `intent` is set by
    the caller, "" for none; None derives it from the words (feature C8).
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
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    token_usage: float | None = None
    dedup: bool = True
    intent: str | None = None
    plan: Plan = field(default_factory=Plan)

    def planned(self, plan: Plan) -> Query:
        """The query with another plan: its folders and memories restrict the scope, its respellings replace terms."""
        instead = {found.term: tuple(found.instead) for found in plan.respelt}
        terms = tuple(chain.from_iterable(instead.get(term, (term,)) for term in self.terms)) if instead else self.terms
        wanted = self.wanted
        if wanted.folders != plan.folders or wanted.memories != plan.memories:
            wanted = replace(wanted, folders=plan.folders, memories=plan.memories)
        return replace(self, plan=plan, terms=terms, wanted=wanted)

    @property
    def reading(self) -> str:
        """The text with misspelt words corrected, for components that read the text instead of the terms."""
        if not self.plan.respelt:
            return self.text
        # all words in one pass: a replacement may contain another word, and must not be replaced again
        readings = {found.word: found.reading for found in reversed(self.plan.respelt)}
        words = "|".join(map(re.escape, sorted(readings, key=len, reverse=True)))
        return re.sub(rf"\b(?:{words})\b", lambda found: readings[found[0]], self.text)

    def weight(self, term: str) -> float:
        """The weight of a term, (0, 1]: less than 1 for the replacement of a misspelt word."""
        return max((found.instead[term] for found in self.plan.respelt if term in found.instead), default=1.0)

    def whatever_is_asked(self, most: int) -> int:
        """The maximum number of rows pinned above all others independent of the query: `most`, at most half the limit.

        At least 1, so that a constitutional memory is visible even in an answer of one row (feature C6).
        """
        return min(most, max(1, self.limit // 2))

    @property
    def running_mode(self) -> Mode:
        """The effective mode: the plan's, else the requested one."""
        return self.plan.mode or self.mode


@dataclass(frozen=True, slots=True)
class Hits:
    """The hits of one channel, in total order.

    `ids` int64[n], unique, memories or chunks as `level` says; `scores` float64[n], finite, on `scale`; `passages`
    int64[n] is the best matching chunk, -1 if the channel does not know. `rest` is the score of all other rows if the
    limit was not reached: 0 if they have nothing in common with the query, NaN if the channel does not know.
    """

    ids: Ids
    scores: Column
    scale: Scale
    level: Level = "memory"
    passages: Ids | None = None
    rest: float = 0.0

    def __post_init__(self) -> None:
        check_columns(self.ids, scores=self.scores, passages=self.passages)
        check_order(self.ids, self.scores)

    @classmethod
    def ordered(
        cls,
        ids: Ids,
        scores: Column,
        scale: Scale,
        *,
        limit: int,
        level: Level = "memory",
        passages: Ids | None = None,
        rest: float = 0.0,
    ) -> Hits:
        """The best `limit` of these rows, sorted into total order.

        Args:
            ids: Unique memories or chunks, int64[n].
            scores: Finite scores, float64[n].
            scale: The scale of the scores.
            limit: Maximum number of hits.
            level: Whether the ids are memories or chunks.
            passages: The best matching chunk of each row, -1 if unknown; None if all are unknown.
            rest: The score of all other rows; NaN if unknown.
        """
        rows = total_order(scores, ids)[:limit]
        return cls(ids[rows], scores[rows], scale, level, None if passages is None else passages[rows], rest)

    @property
    def matched(self) -> Ids:
        """int64[n]: the best matching passage, the hit itself if the channel does not know."""
        return matched_passages(self.ids, self.passages)

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
    if not len(ids):
        return
    ordered = np.sort(ids)  # takes a fifth of the time of np.unique for few rows
    if (ordered[1:] == ordered[:-1]).any():
        raise ValueError("ids must be unique")
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite")


def check_order(ids: Ids, scores: Column) -> None:
    """Raises ValueError unless the rows are in total order."""
    ordered = scores[:-1] > scores[1:]
    if len(ids) > 1 and not ordered.all():
        tied = (scores[:-1] == scores[1:]) & (ids[:-1] < ids[1:])
        if not (ordered | tied).all():
            raise ValueError("hits must be ordered by score descending, then id ascending")


@dataclass(frozen=True, slots=True)
class Candidates:
    """The union of all channels' hits, before any score.

    `ids` ascending; `parents` the memory of each row; `passages` the matched chunk (-1 unknown). The columns are the
    searches that answered: `channels` names the channel of each, `variants` the query variant it searched (0 is the
    query itself). `raw` float64[n, columns], NaN if a search did not return the row; `rank` int32[n, columns] from 1,
    equal if `raw` is equal among the hits, -1 if a search did not return the row. `rest` float64[columns] is the score
    of rows that a search did not return, NaN if its limit cut them off: these are only known to be not above its last
    hit. `updated_at` is in epoch seconds, NaN if unknown.
    """

    ids: Ids
    parents: Ids
    passages: Ids
    updated_at: Column
    channels: tuple[str, ...]
    variants: tuple[int, ...]
    scales: tuple[Scale, ...]
    rest: Column
    raw: Column
    rank: Ranks

    @property
    def matched(self) -> Ids:
        """int64[n]: the best matching passage, the row itself if no channel knows."""
        return matched_passages(self.ids, self.passages)

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
            self.rest,
            self.raw[rows],
            self.rank[rows],
        )


@dataclass(frozen=True, slots=True)
class StepScore:
    """The score of every row after one step, and the parts that the step added or multiplied.

    `kind` says how the score is computed from the parts: "sum" (`parts` are the addends), "add", "multiply" (`parts`
    has one column), "formula" (`parts` belong to the step's `formulas`, as in `Workings`), "replace" (the step gives no
    formula; `parts` has the score itself).
    """

    step: str
    kind: Literal["sum", "add", "multiply", "formula", "replace"]
    scale: Scale
    names: tuple[str, ...]
    parts: Column
    after: Column
    formulas: tuple[str, ...] = ()

    def take(self, rows: NDArray[np.intp]) -> StepScore:
        """The scores of these rows, in this order."""
        parts, after = self.parts[rows], self.after[rows]
        return StepScore(self.step, self.kind, self.scale, self.names, parts, after, self.formulas)


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
    """The possible answers of a reranker: `Rescored`, `Selected` or `Grouped`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Rescored(Reranking):
    """A reranker's answer: a new score for every row of the pool, float64[n], finite, and its derivation.

    `workings` must give exactly these scores, otherwise the answer is rejected; without them explain only shows the
    result.
    """

    scores: Column
    workings: Workings | None = None

    @classmethod
    def by(cls, before: Column, *formulas: str, **parts: Column | float) -> Rescored:
        """The scores computed by formulas; in each row the first formula whose parts are all known (see `Workings`)."""
        workings = Workings.of(len(before), formulas, parts)
        return cls(workings.scores(before), workings)


@dataclass(frozen=True, slots=True)
class Selected(Reranking):
    """A reranker's answer: the rows that remain, bool[n]."""

    keep: Mask


@dataclass(frozen=True, slots=True)
class Grouped(Reranking):
    """A reranker's answer: rows with equal `groups` (int64[n], memory ids) become one row with that id.

    `scores` float64[n] is the score of the group, equal within a group. `workings` describe the first and best row of
    each group: they give its score, and `before` in them is its previous score.
    """

    groups: Ids
    scores: Column
    workings: Workings | None = None


JSON = None | bool | int | float | str | list[Any] | dict[str, Any]


GAP_WARNING = "Evidence gap:"
"""The beginning of the evidence gap warning; servers may replace the text."""


@dataclass(frozen=True, slots=True)
class Notes:
    """An annotator's answer: remarks by id and about the whole answer, and optionally the rows that remain.

    A remark cannot name a score or a position: those keys are rejected.
    """

    by_id: Mapping[int, Mapping[str, JSON]] = field(default_factory=dict)
    overall: Mapping[str, JSON] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    keep: Mask | None = None
