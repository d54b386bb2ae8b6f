"""The assembled product and its Python API.

`Memory` is imported on first use: importing this package loads neither numpy nor a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.engine.api.memory import Memory

__all__ = ["Memory"]


def __getattr__(name: str) -> Any:
    if name == "Memory":
        from speckit_memory.engine.api.memory import Memory

        return Memory
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
