"""What flows between the stages: frozen columns. One page in docs/datamodel.md explains them.

Row objects exist only at the edge. Every array is aligned with `ids`. The total order everywhere is score descending,
then id ascending; NaN is no score. The rank of a hit is 1 + the number of strictly better hits of its search: equal
scores share a rank (1, 1, 3). Ids order rows that are equal; they never enter a score.
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
"""What a question may be asked for (feature C8). Of two that as much speaks for, it is the one that comes first."""


def total_order(scores: Column, ids: Ids) -> NDArray[np.intp]:
    """Row numbers by score descending, then id ascending."""
    return np.lexsort((ids, -scores))


@dataclass(frozen=True, slots=True)
class Respelling:
    """What is searched in place of a word that no memory holds.

    `word` is as it was typed and `term` its token; `instead` maps the terms that stand for it to the weight of each,
    (0, 1], likeliest first, and `reading` is the word that was probably meant.
    """

    word: str
    term: str
    instead: Mapping[str, float]
    reading: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What query understanding made of a query; steps return changed copies of it.

    `channels` limits the declared channels (None: all of them); `limits` overrides channel limits; `variants` holds
    the texts to search, the query itself first; `reasons` says, a line each, why the plan looks as it does.

    `mode` replaces the query's own (feature C17); `importance_boost` is added to the importance of matches (C16);
    `folders` narrows the scope to these folders (C13), `memories` to these, unless it is None (C1), and `warnings` says
    which words could not be honoured or were left out; the frame alone sets these two. `respelt` replaces words that
    no memory holds. When no channel found anything, the frame says in `asked_similarity` the highest similarity that
    one of them asked for, 0 where none did. A recoverer may relax that by `min_similarity`, which binds channels that
    ask for more, and raise `limit_factor`; `attempt` counts how often (C14).

    `times` are the spans that the question names, from a moment up to another in seconds since 1970, `order` says
    whether it asks for what is newest, and `topic` holds the terms that are left of it without all that; None where it
    names no time. `counted_from` is the moment from which times such as "last week" are counted where it is not now.

    `complexity_confidence` is "fallback" while nothing has judged the complexity, because the step is missing, off or
    failed (C9). `connected` counts the memories that the causal graph connects with the question, None when nobody has
    looked; `graph_gap` says that they are too few (C15).
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
        """The reasons with one more."""
        return (*self.reasons, reason)


@dataclass(frozen=True, slots=True)
class Query:
    """One question. Time, limit, deadline and session travel here: no component reads a clock or a random source.

    `now` is in epoch seconds; `deadline_ns` is a reading of the monotonic clock, None for no deadline. `terms` are the
    analysed tokens of the text, in order, with what the plan searches in place of misspelt ones; `concepts` are texts
    that must all match (feature C1), none for a plain query; `anchors` are the only sections wanted of each memory,
    none for all (feature A7). `required` are the quoted words and phrases that a memory must hold, `excluded` those
    that it must not. `token_usage` is the share of the caller's context window already in use, [0, 1], None when
    unknown (feature C17); `dedup` is false for who wants to see again what the session was sent (feature A2).
    `intent` is the one that the caller says, "" for none; None has the words tell (feature C8).
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
        """The question with another plan: its folders and memories narrow the scope, its spellings replace terms."""
        instead = {found.term: tuple(found.instead) for found in plan.respelt}
        terms = tuple(chain.from_iterable(instead.get(term, (term,)) for term in self.terms)) if instead else self.terms
        wanted = replace(self.wanted, folders=plan.folders, memories=plan.memories)
        return replace(self, plan=plan, terms=terms, wanted=wanted)

    @property
    def reading(self) -> str:
        """The text as it was probably meant: for those that read it and do not look up its terms."""
        if not self.plan.respelt:
            return self.text
        # all words at once: a reading that holds one of the words is not read again, and so cannot grow without end
        readings = {found.word: found.reading for found in reversed(self.plan.respelt)}
        words = "|".join(map(re.escape, sorted(readings, key=len, reverse=True)))
        return re.sub(rf"\b(?:{words})\b", lambda found: readings[found[0]], self.text)

    def weight(self, term: str) -> float:
        """How much a term counts, (0, 1]: less than 1 for one that stands for a misspelt word."""
        return max((found.instead[term] for found in self.plan.respelt if term in found.instead), default=1.0)

    def whatever_is_asked(self, most: int) -> int:
        """How many rows may stand above all others whatever the question: `most`, but no more than half of the limit.

        At least 1, so that a rule of the house is seen even in an answer of one row (feature C6).
        """
        return min(most, max(1, self.limit // 2))

    @property
    def running_mode(self) -> Mode:
        """The mode this question runs in: the plan's, else the one asked for."""
        return self.plan.mode or self.mode


@dataclass(frozen=True, slots=True)
class Hits:
    """What one channel found, in total order.

    `ids` int64[n], unique, memories or chunks as `level` says; `scores` float64[n], finite, on `scale`; `passages`
    int64[n] is the chunk that matched best, -1 where the channel cannot tell. `rest` is what the channel gives to all
    that it leaves out though its limit had room for more: 0 where it has nothing in common with the query, NaN where
    the channel cannot tell.
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
        """The best `limit` of these rows, put into total order."""
        rows = total_order(scores, ids)[:limit]
        return cls(ids[rows], scores[rows], scale, level, None if passages is None else passages[rows], rest)

    @property
    def matched(self) -> Ids:
        """int64[n]: the passage that matched best, the hit itself where the channel cannot tell."""
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
    ordered = np.sort(ids)  # a fifth of the time of np.unique for the few rows there are
    if (ordered[1:] == ordered[:-1]).any():
        raise ValueError("ids must be unique")
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite")


def check_order(ids: Ids, scores: Column) -> None:
    """Raises ValueError unless rows are in total order."""
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
    query itself). `raw` float64[n, columns], NaN where a search did not return the row; `rank` int32[n, columns] from
    1, equal where `raw` is equal among the hits, -1 likewise. `rest` float64[columns] is the score of the rows that a
    search did not return, NaN where its limit cut it off: of those one knows only that they are not above its last hit.
    `updated_at` is in epoch seconds, NaN where unknown.
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
        """int64[n]: the passage that matched best, the row itself where no channel can tell."""
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
    """The score of every row after one step, and what the step added or multiplied.

    `kind` tells how the score is made of the parts: "sum" (`parts` are the addends), "add", "multiply" (`parts` has the
    one column), "formula" (`parts` are those of the step's `formulas`, as in `Workings`), "replace" (the step does not
    say how; `parts` has the score itself).
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
    """What a reranker may answer: `Rescored`, `Selected` or `Grouped`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Rescored(Reranking):
    """A reranker's answer: a new score for every row of the pool, float64[n], finite, and how it was made.

    `workings` give exactly these scores, or the answer is refused; without them explain can only name the result.
    """

    scores: Column
    workings: Workings | None = None

    @classmethod
    def by(cls, before: Column, *formulas: str, **parts: Column | float) -> Rescored:
        """The scores that formulas give, the first that holds in each row (see `Workings`)."""
        workings = Workings.of(len(before), formulas, parts)
        return cls(workings.scores(before), workings)


@dataclass(frozen=True, slots=True)
class Selected(Reranking):
    """A reranker's answer: which rows stay, bool[n]."""

    keep: Mask


@dataclass(frozen=True, slots=True)
class Grouped(Reranking):
    """A reranker's answer: rows with equal `groups` (int64[n], memory ids) become one row with that id.

    `scores` float64[n] is the score of the group, equal within a group. `workings` speak of the best row of each group,
    which is the first: they give its score, and `before` in them is the one it had.
    """

    groups: Ids
    scores: Column
    workings: Workings | None = None


JSON = None | bool | int | float | str | list[Any] | dict[str, Any]


GAP_WARNING = "Evidence gap:"
"""How the warning of an evidence gap begins; a door may say it in words of its own."""


@dataclass(frozen=True, slots=True)
class Notes:
    """An annotator's answer: remarks by id and about the whole answer, and optionally which rows stay.

    A remark has no way to name a score or a position: those keys are refused.
    """

    by_id: Mapping[int, Mapping[str, JSON]] = field(default_factory=dict)
    overall: Mapping[str, JSON] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    keep: Mask | None = None
