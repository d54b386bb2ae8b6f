"""Hints on parameters that have no effect in a call, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from speckit_memory.errors.echo import list_names

NAMED = 6
"""Parameters named; the rest are only counted."""


class UnusedParameters(NamedTuple):
    """Parameters without effect given the values of others, and the reason."""

    names: Collection[str]
    why: str


Rule = Callable[[Mapping[str, Any]], UnusedParameters | None]
"""Finds the parameters without effect among the values of all parameters; None if each has an effect."""


def told_idle(rule: Rule | None, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[str, ...]:
    """The hint on parameters given without effect, if any. Values equal to the default do not count as given."""
    idle = rule(values) if rule else None
    if idle is None:
        return ()
    # a default value cannot be told apart from "not given"
    given = [name for name, value in values.items() if name in idle.names and value != defaults[name]]
    return (f"without effect, as {idle.why}: {list_names(given, NAMED)}",) if given else ()
