"""What every kind of made query is: a function from a collection to queries, without end but for the documents'."""

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
    """A query and the rows of the documents that are relevant to it; `notes` become metadata of the query."""

    text: str
    relevant: Rows
    notes: Mapping[str, str | int] = field(default_factory=dict)


Derive = Callable[[Collection, Random], Iterator[MadeQuery]]
"""Makes queries one after the other, as long as the documents have any left; the same ones for the same seed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of query. `asks_for` says what there must be for one more, to be read after "there is no further …"."""

    derive: Derive
    asks_for: str


def shuffled(items: Iterable[Item], random: Random) -> list[Item]:
    """The items in random order."""
    drawn = list(items)
    random.shuffle(drawn)
    return drawn


def in_turn(sources: Iterable[Iterator[Item]]) -> Iterator[Item]:
    """One item of each source in turn, as long as any has one: equal numbers of each, as far as they go."""
    waiting = deque(sources)
    while waiting:
        source = waiting.popleft()
        for item in source:
            yield item
            waiting.append(source)
            break
