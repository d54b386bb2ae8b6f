"""An honest extension: every component of the product, offered once more under another name."""

from __future__ import annotations


def register(registry):
    from speckit_memory.engine.assembly import COMPONENTS

    for role, component in COMPONENTS:
        registry.add(role, component, "again_" + component.__module__.rpartition(".")[2])
