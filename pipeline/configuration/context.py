"""What the steps of a pipeline leave to one another: what is said about a channel follows the channels there are.

Weights and lists name channels. A channel that a nearer list leaves out takes what is inherited about it along, and one
that nobody weighs has a weight all the same: after this pass the parameters say each weight that will be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from speckit_memory.config.pipelines.layering import without
from speckit_memory.config.yaml.reader import locate
from speckit_memory.errors import Problem, Where
from speckit_memory.pipeline.configuration.binding import Bound, validated
from speckit_memory.pipeline.configuration.declared import as_objections, as_params, ask
from speckit_memory.pipeline.configuration.scale_rules import scale_of
from speckit_memory.pipeline.roles.contracts import Params, PipelineContext
from speckit_memory.pipeline.roles.hooks import CHECK, SETTLED, Path

LeftOut = Callable[[str, Where], bool]
"""Whether what is said about a channel at a place is out of use, because the channel is."""


def context_of(bound: Sequence[Bound]) -> PipelineContext:
    """What each step may check its own parameters against."""
    declared = {entry.step.id for entry in bound if entry.registered}
    # a misspelt step stands for what it means, unless that stands there as well
    channels = [
        entry for entry in bound if entry.step.slot == "channels" and (entry.registered or entry.id not in declared)
    ]
    return PipelineContext(
        channels=tuple(entry.id for entry in channels),
        scales=tuple(scale_of(entry) for entry in channels),
        steps=tuple(entry.id for entry in bound),
        uses=tuple(entry.meant or entry.step.use for entry in bound),
    )


def objections(entry: Bound, context: PipelineContext) -> tuple[list[tuple[Path, str]], Problem | None]:
    """What a component has against its own parameters in this pipeline: the path of each and why.

    The other value says how the component failed to tell.
    """
    found, failed = ask(entry, CHECK, lambda own, params: own.check(params, context), as_objections)
    return found or [], failed


@dataclass(frozen=True, slots=True)
class Released:
    """What a step says about a channel that is out of use: its name as `--set` has it, and where it was written."""

    name: str
    where: Where


def without_left_out(bound: Sequence[Bound], left_out: LeftOut) -> tuple[list[Bound], list[Released]]:
    """The steps without what they say about channels that are out of use, and what that was."""
    context = context_of(bound)
    released: list[Released] = []
    return [_released(entry, context, left_out, released) for entry in bound], released


def _released(entry: Bound, context: PipelineContext, left_out: LeftOut, released: list[Released]) -> Bound:
    params = entry.step.params
    # members of a list from the last to the first: the places of those before it stay the same
    for path, _ in reversed(objections(entry, context)[0]):
        where = locate(entry.step.params, path)
        if path and left_out(_named(entry, path), where):
            params = without(params, path)
            released.append(Released(".".join(map(str, (entry.step.id, *path))), where))
    if params is entry.step.params or entry.registered is None:
        return entry
    step = replace(entry.step, params=params)
    return replace(entry, step=step, params=validated(entry.registered.params, params))


def _named(entry: Bound, path: Path) -> str:
    """What is objected to: a word, by itself or in a list, or the key of a number."""
    value: object = entry.params.model_dump(by_alias=True) if entry.params else None
    for part in path:
        try:
            value = value[part]  # type: ignore[index]
        except (LookupError, TypeError):  # a component may object to what it does not have
            value = None
    return str(value if isinstance(value, str) or not isinstance(path[-1], str) else path[-1])


def settled(bound: Sequence[Bound]) -> list[Bound]:
    """The steps with what their parameters leave to the rest of the pipeline filled in."""
    context = context_of(bound)
    return [replace(entry, params=settled_params(entry, context)[0] or entry.params) for entry in bound]


def settled_params(entry: Bound, context: PipelineContext) -> tuple[Params | None, Problem | None]:
    """The parameters of a step with the rest filled in, None where it leaves nothing to the rest or fails to tell."""
    kind = entry.registered.params if entry.registered else Params
    return ask(entry, SETTLED, lambda own, params: own.settled(params, context), as_params(kind))
