"""Parameters that a caller gave and that do nothing in this call: a hint of the answer says so, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from speckit_memory.errors.echo import listed

NAMED = 6
"""So many are named; of more their number is told."""


class Idle(NamedTuple):
    """Parameters that do nothing beside the values of others, and why."""

    names: Collection[str]
    why: str


Rule = Callable[[Mapping[str, Any]], Idle | None]
"""What a tool says of the values of all its parameters; None where each of them counts."""


def told_idle(rule: Rule | None, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[str, ...]:
    """The hint on what was given in vain, if there is one. Values that are those of the definition ask for nothing."""
    idle = rule(values) if rule else None
    if idle is None:
        return ()
    given = [name for name, value in values.items() if name in idle.names and value != defaults[name]]
    return (f"without effect, as {idle.why}: {listed(given, NAMED)}",) if given else ()
