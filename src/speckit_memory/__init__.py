"""speckit-memory: a project's past for coding agents, found by a declared, measurable retrieval pipeline.

    from speckit_memory import Memory

    with Memory.open("memory.db") as memory:
        memory.index("docs")
        memory.search("why rank fusion?", limit=5)

Names are imported on first use: asking for this package loads neither numpy nor a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.engine import Memory as Memory

__all__ = ["Memory"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from speckit_memory import engine

        return getattr(engine, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
