"""A store in memory and small components, for tests of the frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.model.columns import Candidates, Fused, Hits, Notes, Plan, Pool, Query, Reranking
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Filter, Ids, Scope, Store, Unavailable
from speckit_memory.pipeline.roles.composition import BoundStep, CandidateStage, FusionStage, Pipeline
from speckit_memory.pipeline.roles.contracts import About, ChannelParams, NoParams, Params, SignalParams


class Attributes:
    """Chunk 100·m + k belongs to memory m; every other id is its own memory."""

    def parents(self, ids: Ids) -> Ids:
        return np.where(ids >= 100, ids // 100, ids)

    def scope(self, wanted: Filter, now: float) -> Scope:
        return cast("Scope", Odd()) if wanted.folder == "odd" else cast("Scope", Everything())

    def number(self, name: str, ids: Ids) -> Column:
        return np.full(len(ids), np.nan)

    label = neighbours = of_tier = oldest_first = in_folder = number
    count = 0


class Everything:
    def admits(self, ids: Ids) -> NDArray[np.bool_]:
        return np.ones(len(ids), np.bool_)


class Odd:
    """Of the memories those with odd ids, and their passages."""

    def admits(self, ids: Ids) -> NDArray[np.bool_]:
        odd: NDArray[np.bool_] = Attributes().parents(ids) % 2 == 1
        return odd


class Lexicon:
    def analyse(self, text: str) -> tuple[str, ...]:
        return tuple(text.lower().split())

    def index(self, field: str, level: str = "memory") -> SimpleNamespace:
        return SimpleNamespace(holders=lambda term: 0)

    bags = words = near = prefetch = index


class SmallStore:
    attributes = Attributes()
    lexicon = Lexicon()


@dataclass
class FixedChannel:
    """Answers with the given hits, or raises, or is unavailable."""

    hits: dict[int, float] | Unavailable | Exception
    scale: Scale = Scale.UNIT
    level: Literal["memory", "chunk"] = "memory"
    asked: list[str] = field(default_factory=list)
    rest: float = 0.0
    costly: bool = True

    def search(self, query: Query, limit: int, store: Store) -> Hits | Unavailable:
        self.asked.append(query.text)
        if isinstance(self.hits, Exception):
            raise self.hits
        if isinstance(self.hits, Unavailable):
            return self.hits
        ids, scores = np.array([*self.hits], np.int64), np.array([*self.hits.values()], np.float64)
        return Hits.ordered(ids, scores, self.scale, limit=limit, level=self.level, rest=self.rest)


class ChunkParams(ChannelParams):
    level: Literal["memory", "chunk"] = "memory"


class SumFuser:
    """Adds up the raw scores."""

    def fuse(self, query: Query, candidates: Candidates) -> Fused:
        return Fused(candidates.channels, np.nan_to_num(candidates.raw))


@dataclass
class FixedSignal:
    """Answers with a constant column, or whatever it was given."""

    value: Any
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        if isinstance(self.value, Exception):
            raise self.value
        if isinstance(self.value, dict):
            return np.array([self.value.get(memory, 0.0) for memory in pool.ids.tolist()])
        return cast("Column | Unavailable", self.value)


@dataclass
class FunctionReranker:
    work: Callable[[Pool], Reranking | Unavailable]

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:
        return self.work(pool)


@dataclass
class FunctionAnnotator:
    work: Callable[[Ranking], Notes | Unavailable]

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        return self.work(ranking)


@dataclass
class FunctionUnderstander:
    work: Callable[[Query, Plan], Plan | Unavailable]

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan | Unavailable:
        return self.work(query, plan)


def step(
    name: str,
    component: Any,
    params: Params | None = None,
    *,
    optional: bool = False,
    gives: Scale | None = None,
    costly: bool = False,
) -> BoundStep[Any]:
    about = About(features=("P1",), costly=costly)
    return BoundStep(name, name, component, params or NoParams(), about, gives, optional)


def pipeline(
    channels: dict[str, Any],
    signals: Iterable[BoundStep[Any]] = (),
    rerank: Iterable[BoundStep[Any]] = (),
    annotate: Iterable[BoundStep[Any]] = (),
    understand: Iterable[BoundStep[Any]] = (),
    recover: Iterable[BoundStep[Any]] = (),
) -> Pipeline:
    searches = tuple(
        step(
            name,
            channel,
            ChunkParams(level=getattr(channel, "level", "memory")),
            gives=getattr(channel, "scale", Scale.UNIT),
            costly=getattr(channel, "costly", True),
        )
        for name, channel in channels.items()
    )
    return Pipeline(
        "test",
        "0" * 12,
        {"simple": 30.0, "moderate": 100.0, "complex": 300.0, "shadow": 500.0},
        CandidateStage(tuple(understand), searches, tuple(recover)),
        FusionStage(step("fuse", SumFuser(), gives=Scale.BOOST), tuple(signals)),
        tuple(rerank),
        tuple(annotate),
    )


def signal(name: str, value: Any, *, optional: bool = True, **bounds: Any) -> BoundStep[Any]:
    return step(name, FixedSignal(value), SignalParams(**bounds), optional=optional)


def question(text: str = "why", **more: Any) -> Query:
    return Query(text=text, now=1_000_000.0, **more)
