"""What the steps of a pipeline leave to one another: what is said about a channel follows the channels there are.

Weights name channels. A channel that a nearer list leaves out takes its inherited weight with it, and one that nobody
weighs has a weight all the same: after this pass the parameters say each weight that will be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from config.errors import Where
from config.layering import without
from config.yaml_reader import locate
from pipeline.binding import Bound, validated
from pipeline.contracts import Surroundings
from pipeline.scale_rules import scale_of

LeftOut = Callable[[str, Where], bool]
"""Whether what is said about a channel at a place is out of use, because the channel is."""

Path = tuple[str | int, ...]


def surroundings(bound: Sequence[Bound]) -> Surroundings:
    """What each step may check its own parameters against."""
    declared = {entry.step.id for entry in bound if entry.registered}
    # a misspelt step stands for what it means, unless that stands there as well
    channels = [
        entry for entry in bound if entry.step.slot == "channels" and (entry.registered or entry.id not in declared)
    ]
    return Surroundings(
        channels=tuple(entry.id for entry in channels),
        scales=tuple(scale_of(entry) for entry in channels),
        steps=tuple(entry.id for entry in bound),
        uses=tuple(entry.meant or entry.step.use for entry in bound),
    )


def objections(entry: Bound, around: Surroundings) -> Iterator[tuple[Path, str]]:
    """What a component has against its own parameters among these surroundings: the path of each and why."""
    own = getattr(entry.registered.component, "check", None) if entry.registered and entry.params else None
    for path, message in own(entry.params, around) if own else ():
        yield tuple(path), message


def without_left_out(bound: Sequence[Bound], left_out: LeftOut) -> list[Bound]:
    """The steps without what they say about channels that are out of use."""
    around = surroundings(bound)
    return [_released(entry, around, left_out) for entry in bound]


def _released(entry: Bound, around: Surroundings, left_out: LeftOut) -> Bound:
    params = entry.step.params
    for path, _ in objections(entry, around):
        if path and isinstance(path[-1], str) and left_out(path[-1], locate(entry.step.params, path)):
            params = without(params, path)
    if params is entry.step.params or entry.registered is None:
        return entry
    step = replace(entry.step, params=params)
    return replace(entry, step=step, params=validated(entry.registered.params, params))


def settled(bound: Sequence[Bound]) -> list[Bound]:
    """The steps with what their parameters leave to the rest of the pipeline filled in."""
    around = surroundings(bound)
    return [_settled(entry, around) for entry in bound]


def _settled(entry: Bound, around: Surroundings) -> Bound:
    by_rest = getattr(entry.registered.component, "settled", None) if entry.registered and entry.params else None
    return replace(entry, params=by_rest(entry.params, around)) if by_rest else entry
