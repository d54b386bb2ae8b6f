"""Cross-step defaults: per-channel settings apply only to channels that exist.

Weights and lists name channels. If a file's own list leaves out a channel, inherited settings for that channel are
dropped; a channel without a weight gets the default weight. After this pass the parameters hold every weight in use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from speckit_memory.config.yaml.reader import locate, without
from speckit_memory.errors import Problem, Where
from speckit_memory.pipeline.configuration.binding import BoundParameters, validate_parameters
from speckit_memory.pipeline.configuration.declared import as_objections, as_params, ask
from speckit_memory.pipeline.configuration.scale_rules import scale_of
from speckit_memory.pipeline.roles.contracts import Params, PipelineContext
from speckit_memory.pipeline.roles.hooks import CHECK, SETTLED, Path

LeftOut = Callable[[str, Where], bool]
"""Whether a setting for a channel, at a position in a file, is unused because the channel is."""


def context_of(bound: Sequence[BoundParameters]) -> PipelineContext:
    """The context against which each step may check its own parameters."""
    declared = {entry.step.id for entry in bound if entry.registered}
    # a misspelt step counts as the one it means, unless that one is present as well
    channels = [
        entry for entry in bound if entry.step.slot == "channels" and (entry.registered or entry.id not in declared)
    ]
    return PipelineContext(
        channels=tuple(entry.id for entry in channels),
        scales=tuple(scale_of(entry) for entry in channels),
        steps=tuple(entry.id for entry in bound),
        uses=tuple(entry.meant or entry.step.use for entry in bound),
    )


def objections(entry: BoundParameters, context: PipelineContext) -> tuple[list[tuple[Path, str]], Problem | None]:
    """The objections of a component to its own parameters in this pipeline, each with the path of the parameter.

    The second value is the failure of the component to answer, or None.
    """
    found, failed = ask(entry, CHECK, lambda own, params: own.check(params, context), as_objections)
    return found or [], failed


@dataclass(frozen=True, slots=True)
class UnusedChannelRef:
    """A setting for a channel that is not in use: its name as in `--set`, and its position."""

    name: str
    where: Where


def without_left_out(
    bound: Sequence[BoundParameters], left_out: LeftOut
) -> tuple[list[BoundParameters], list[UnusedChannelRef]]:
    """The steps without settings for unused channels, and the removed settings."""
    context = context_of(bound)
    released: list[UnusedChannelRef] = []
    return [_released(entry, context, left_out, released) for entry in bound], released


def _released(
    entry: BoundParameters, context: PipelineContext, left_out: LeftOut, released: list[UnusedChannelRef]
) -> BoundParameters:
    params = entry.step.params
    # list items from last to first, so that the indices of earlier items stay valid
    for path, _ in reversed(objections(entry, context)[0]):
        where = locate(entry.step.params, path)
        if path and left_out(_name_at(entry, path), where):
            params = without(params, path)
            released.append(UnusedChannelRef(".".join(map(str, (entry.step.id, *path))), where))
    if params is entry.step.params or entry.registered is None:
        return entry
    step = replace(entry.step, params=params)
    return replace(entry, step=step, params=validate_parameters(entry.registered.params, params))


def _name_at(entry: BoundParameters, path: Path) -> str:
    """The name at the path: a text, by itself or in a list, or the key of a number."""
    value: object = entry.params.model_dump(by_alias=True) if entry.params else None
    for part in path:
        try:
            value = value[part]  # type: ignore[index]
        except (LookupError, TypeError):  # a component may name a path that does not exist
            value = None
    return str(value if isinstance(value, str) or not isinstance(path[-1], str) else path[-1])


def settle_parameters(bound: Sequence[BoundParameters]) -> list[BoundParameters]:
    """The steps with open parameters filled in from the rest of the pipeline."""
    context = context_of(bound)
    return [replace(entry, params=settled_params(entry, context)[0] or entry.params) for entry in bound]


def settled_params(entry: BoundParameters, context: PipelineContext) -> tuple[Params | None, Problem | None]:
    """The parameters of a step with open ones filled in; None if none is open or the component fails."""
    kind = entry.registered.params if entry.registered else Params
    return ask(entry, SETTLED, lambda own, params: own.settled(params, context), as_params(kind))
