"""Describes a store's vector search for the health report, and what would make it faster."""

from __future__ import annotations

from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.memory.store.read_model.vectors.ivf_lists import INSTALL, is_faiss_installed
from speckit_memory.memory.store.tables.vectors import vectors

_WRITE = "`speckit-memory doctor --fix` writes a segment with the index. Until then answers are exact."


def told_vectors(opened: OpenStore) -> tuple[str, str]:
    """The present method, and a hint if it can be improved. Without an index, answers are exact."""
    count, setting = vectors.count(opened.database.reader()), opened.vector_index
    lists = opened.read_model.current().vectors.listed
    all_compared = f"all {count:,} vectors are compared"
    if lists is not None and not lists.failure:
        return f"an approximate index finds the nearest of {count:,} vectors (from {setting.least:,} on)", ""
    if setting.least is None:
        return f"{all_compared}; the index is switched off", ""
    if not setting.used:
        return f"{all_compared}; an index may be built but not used", ""
    if not setting.wanted(count):
        return f"{all_compared}; an approximate index is used from {setting.least:,} on", ""
    if not is_faiss_installed():
        return f"{all_compared}, although there are many", f"`{INSTALL}` finds the nearest faster. {_WRITE}"
    if lists is not None:
        return f"{all_compared}: {lists.failure}", _WRITE
    return f"{all_compared}, although there are many: the segment in use has no index of them", _WRITE
