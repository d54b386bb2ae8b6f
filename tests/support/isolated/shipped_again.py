"""An honest extension: every component of the product, offered once more under another name."""

from __future__ import annotations

from speckit_memory.pipeline.roles.registry import Registry


def register(registry: Registry) -> None:
    from speckit_memory.engine.components import COMPONENTS

    for role, component in COMPONENTS:
        registry.admit(role, component, "again_" + component.__module__.rpartition(".")[2])
