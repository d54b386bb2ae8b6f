"""The interface of a kind of made query: a function from a collection to a lazy sequence of queries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from speckit_memory.evaluation.made_queries.collection import Collection, Rows

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class MadeQuery:
    """A query and the rows of its relevant documents; `notes` become metadata of the query."""

    text: str
    relevant: Rows
    notes: Mapping[str, str | int] = field(default_factory=dict)


Derive = Callable[[Collection, Random], Iterator[MadeQuery]]
"""Yields queries until the documents are exhausted; the same ones for the same seed."""


@dataclass(frozen=True, slots=True)
class QueryKind:
    """A kind of query. `asks_for` says what a further query needs, to be read after "there is no further …"."""

    derive: Derive
    asks_for: str


def shuffle_items(items: Iterable[Item], random: Random) -> list[Item]:
    """The items in random order."""
    drawn = list(items)
    random.shuffle(drawn)
    return drawn


def in_turn(sources: Iterable[Iterator[Item]]) -> Iterator[Item]:
    """Takes one item of each source in turn until all are exhausted, so that short sources do not limit long ones."""
    waiting = deque(sources)
    while waiting:
        source = waiting.popleft()
        for item in source:
            yield item
            # an exhausted source is not put back
            waiting.append(source)
            break
