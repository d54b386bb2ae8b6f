"""speckit-memory: a project's memory for coding agents, searched by a declared, measurable retrieval pipeline.

    from speckit_memory import Memory

    with Memory.open("memory.db") as memory:
        memory.index("docs")
        memory.search("why rank fusion?", limit=5)

The classes of what other operations return, and of the parts of an answer, are in `speckit_memory.results`. Names are
imported on first use: importing this package loads neither numpy nor a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.engine.answers.request import SearchRequest as SearchRequest
    from speckit_memory.engine.answers.results import Explanation as Explanation
    from speckit_memory.engine.answers.results import ResultRow as ResultRow
    from speckit_memory.engine.answers.results import SearchResult as SearchResult
    from speckit_memory.engine.answers.search_options import SearchOptions as SearchOptions
    from speckit_memory.engine.api.memory import Memory as Memory
    from speckit_memory.engine.diagnostics.health_report import HealthReport as HealthReport
    from speckit_memory.engine.explain.smallest_change import SmallestChange as SmallestChange
    from speckit_memory.engine.search.plans import PlanReport as PlanReport
    from speckit_memory.engine.search.reading import TextExcerpt as TextExcerpt
    from speckit_memory.errors import ConfigurationError as ConfigurationError
    from speckit_memory.errors import DocumentError as DocumentError
    from speckit_memory.errors import InternalError as InternalError
    from speckit_memory.errors import InvalidRequestError as InvalidRequestError
    from speckit_memory.errors import ModelUnavailableError as ModelUnavailableError
    from speckit_memory.errors import NotFoundError as NotFoundError
    from speckit_memory.errors import Problem as Problem
    from speckit_memory.errors import SearchFailedError as SearchFailedError
    from speckit_memory.errors import SpeckitError as SpeckitError
    from speckit_memory.errors import StoreBusyError as StoreBusyError
    from speckit_memory.errors import StoreClosedError as StoreClosedError
    from speckit_memory.errors import StoreError as StoreError
    from speckit_memory.errors import Where as Where
    from speckit_memory.memory.indexing import IndexProgress as IndexProgress
    from speckit_memory.memory.indexing import IndexReport as IndexReport
    from speckit_memory.memory.indexing import SaveResult as SaveResult
    from speckit_memory.memory.indexing import Source as Source
    from speckit_memory.memory.store.records import MemoryRecord as MemoryRecord
    from speckit_memory.memory.store.records import Tier as Tier
    from speckit_memory.pipeline.ports import Passage as Passage

_MODULES = {
    "engine.answers.request": ("SearchRequest",),
    "engine.answers.results": (
        "Explanation",
        "ResultRow",
        "SearchResult",
    ),
    "engine.answers.search_options": ("SearchOptions",),
    "engine.api.memory": ("Memory",),
    "engine.diagnostics.health_report": ("HealthReport",),
    "engine.explain.smallest_change": ("SmallestChange",),
    "engine.search.plans": ("PlanReport",),
    "engine.search.reading": ("TextExcerpt",),
    "errors": (
        "ConfigurationError",
        "DocumentError",
        "InternalError",
        "InvalidRequestError",
        "ModelUnavailableError",
        "NotFoundError",
        "Problem",
        "SearchFailedError",
        "SpeckitError",
        "StoreBusyError",
        "StoreClosedError",
        "StoreError",
        "Where",
    ),
    "memory.indexing": (
        "IndexProgress",
        "IndexReport",
        "SaveResult",
        "Source",
    ),
    "memory.store.records": (
        "MemoryRecord",
        "Tier",
    ),
    "pipeline.ports": ("Passage",),
}
"""The module of each public name."""
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605 -- one list of names is enough


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    # Cached in the module, so that `__getattr__` runs once per name.
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
