"""The frame: data model, roles, registry, builder, runner, trace. It names no concrete component.

Extensions import from here (docs/extending.md), by these names alone: modules below may move. Names are loaded on first
use, so that `memory` can import the ports and the server can start without the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.pipeline.model.columns import Candidates as Candidates
    from speckit_memory.pipeline.model.columns import Fused as Fused
    from speckit_memory.pipeline.model.columns import Grouped as Grouped
    from speckit_memory.pipeline.model.columns import Hits as Hits
    from speckit_memory.pipeline.model.columns import Notes as Notes
    from speckit_memory.pipeline.model.columns import Plan as Plan
    from speckit_memory.pipeline.model.columns import Pool as Pool
    from speckit_memory.pipeline.model.columns import Query as Query
    from speckit_memory.pipeline.model.columns import Rescored as Rescored
    from speckit_memory.pipeline.model.columns import Selected as Selected
    from speckit_memory.pipeline.model.ranking import Ranking as Ranking
    from speckit_memory.pipeline.model.scales import Scale as Scale
    from speckit_memory.pipeline.ports import Column as Column
    from speckit_memory.pipeline.ports import Filter as Filter
    from speckit_memory.pipeline.ports import Ids as Ids
    from speckit_memory.pipeline.ports import Store as Store
    from speckit_memory.pipeline.ports import Unavailable as Unavailable
    from speckit_memory.pipeline.process.clock import opening as opening
    from speckit_memory.pipeline.roles.contracts import About as About
    from speckit_memory.pipeline.roles.contracts import ChannelParams as ChannelParams
    from speckit_memory.pipeline.roles.contracts import NoParams as NoParams
    from speckit_memory.pipeline.roles.contracts import Params as Params
    from speckit_memory.pipeline.roles.contracts import PipelineContext as PipelineContext
    from speckit_memory.pipeline.roles.contracts import Role as Role
    from speckit_memory.pipeline.roles.contracts import SignalParams as SignalParams
    from speckit_memory.pipeline.roles.registry import Registry as Registry

_MODULES = {
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
"""The module of each name for extensions."""
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605 -- one list of names is enough


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
