"""Attributes the first results of answers to the channels that found them (feature E2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_DEPTH = 10


@dataclass(frozen=True, slots=True)
class ChannelShare:
    """A channel's share of the first ten results of all queries, in [0, 1]: found at all, and found by it alone."""

    coverage: float
    exclusive: float


@dataclass(frozen=True, slots=True)
class ChannelAttribution:
    """The first ten results of all queries by channel.

    `single` were found by one channel, `multiple` by several, `unattributed` by none: a later step added them.
    """

    results: int
    single: int
    multiple: int
    unattributed: int
    channels: Mapping[str, ChannelShare]

    def __str__(self) -> str:
        """The channels on one line."""
        shares = [f"{name} {one.coverage:.0%} (alone {one.exclusive:.0%})" for name, one in self.channels.items()]
        return ", ".join(shares) or "no channel"


def attribution(answers: Iterable[Sequence[Sequence[str]]]) -> ChannelAttribution:
    """Attributes the first ten results of each answer; each result is given as the channels that found it.

    Channels are sorted by coverage, the highest first.
    """
    results = [tuple(channels) for answer in answers for channels in answer[:_DEPTH]]
    found = Counter(name for channels in results for name in channels)
    alone = Counter(channels[0] for channels in results if len(channels) == 1)
    shares = [(name, ChannelShare(n / len(results), alone[name] / len(results))) for name, n in found.items()]
    return ChannelAttribution(
        results=len(results),
        single=alone.total(),
        multiple=sum(len(channels) > 1 for channels in results),
        unattributed=results.count(()),
        channels=dict(sorted(shares, key=lambda one: (-one[1].coverage, one[0]))),
    )
