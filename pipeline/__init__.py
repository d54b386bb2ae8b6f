"""The frame: data model, roles, registry, builder, runner, trace. It names no concrete component.

Extensions import from here (docs/extending.md), by these names alone: modules below may move. Names are loaded on first
use, so that `memory` can import the ports and the server can start without the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.pipeline.model.columns import (
        Candidates,
        Fused,
        Grouped,
        Hits,
        Notes,
        Plan,
        Pool,
        Query,
        Rescored,
        Selected,
    )
    from speckit_memory.pipeline.model.ranking import Ranking
    from speckit_memory.pipeline.model.scales import Scale
    from speckit_memory.pipeline.ports import Column, Filter, Ids, Store, Unavailable
    from speckit_memory.pipeline.process.clock import opening
    from speckit_memory.pipeline.roles.contracts import (
        About,
        ChannelParams,
        NoParams,
        Params,
        PipelineContext,
        Role,
        SignalParams,
    )
    from speckit_memory.pipeline.roles.registry import Registry

__all__ = [
    "About",
    "Candidates",
    "ChannelParams",
    "Column",
    "Filter",
    "Fused",
    "Grouped",
    "Hits",
    "Ids",
    "NoParams",
    "Notes",
    "Params",
    "PipelineContext",
    "Plan",
    "Pool",
    "Query",
    "Ranking",
    "Registry",
    "Rescored",
    "Role",
    "Scale",
    "Selected",
    "SignalParams",
    "Store",
    "Unavailable",
    "opening",
]

_HOMES = {
    "process.clock": ("opening",),
    "roles.contracts": ("About", "ChannelParams", "NoParams", "Params", "Role", "SignalParams", "PipelineContext"),
    "model.columns": (
        "Candidates",
        "Fused",
        "Grouped",
        "Hits",
        "Notes",
        "Plan",
        "Pool",
        "Query",
        "Rescored",
        "Selected",
    ),
    "ports": ("Column", "Filter", "Ids", "Store", "Unavailable"),
    "model.ranking": ("Ranking",),
    "roles.registry": ("Registry",),
    "model.scales": ("Scale",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
