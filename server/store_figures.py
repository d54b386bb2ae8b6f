"""How much a store holds, as plain data, for the command and the tool that tell it (feature T6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.memory.store.reading.reader import StoreStatistics


def store_figures(stats: StoreStatistics, folders: int) -> dict[str, Any]:
    """The counts, with those of the so many largest folders, equal ones by name."""
    from speckit_memory.memory.store.reading.density import as_fields  # it reads stores, which starting does not

    largest = sorted(stats.by_folder.items(), key=lambda item: (-item[1], item[0]))[:folders]
    return {
        "memories": stats.memories,
        "passages": stats.chunks,
        "causal_links": stats.edges,
        "edge_density": as_fields(stats.density),
        "trigger_phrases": stats.triggers,
        "pending_embeddings": stats.pending_embeddings,
        "bytes": stats.bytes,
        "by_tier": {str(tier): count for tier, count in stats.by_tier.items()},
        "folders": [{"folder": folder, "memories": count} for folder, count in largest],
    }
