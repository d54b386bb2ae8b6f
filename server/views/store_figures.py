"""The statistics of a store as plain data, for the command and the tool (feature T6)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.engine.documents.folder_ranking import FolderRanking, RankedFolder
    from speckit_memory.memory.store.reading.reader import StoreStatistics


def store_figures(stats: StoreStatistics, ranking: FolderRanking, folders: int, *, scores: bool) -> dict[str, Any]:
    """Returns the statistics of a store.

    Args:
        stats: The counts of the store.
        ranking: The ranked folders.
        folders: Number of folders to include.
        scores: Whether to include their scores.
    """
    from speckit_memory.memory.store.reading.density import as_fields  # loads the store; not needed at start-up

    return {
        "memories": stats.memories,
        "passages": stats.chunks,
        "causal_links": stats.edges,
        "edge_density": as_fields(stats.density),
        "trigger_phrases": stats.triggers,
        "pending_embeddings": stats.pending_embeddings,
        "bytes": stats.bytes,
        "oldest": stats.oldest,
        "newest": stats.newest,
        "by_tier": {str(tier): count for tier, count in stats.by_tier.items()},
        "folder_count": len(stats.by_folder),
        "left_out": {"excluded": ranking.excluded, "archives": ranking.archives, "put_away": ranking.put_away},
        "folders": [_folder(one, scores) for one in ranking.folders[:folders]],
    }


def _folder(one: RankedFolder, scores: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"folder": one.folder, "memories": one.memories, "updated": one.updated}
    if scores and one.worth:
        parts = {name: round(value, 4) for name, value in asdict(one.worth).items()}
        row |= {"score": parts.pop("score"), "parts": parts}
    return row


def left_out_text(left_out: dict[str, int]) -> str:
    """Describes what the ranking omits; "" for nothing."""
    from speckit_memory.errors.echo import plural

    told = {
        "excluded": f"{plural(left_out['excluded'], 'folder')} by pattern",
        "archives": f"{plural(left_out['archives'], 'folder')} for an archive's name",
        "put_away": f"{plural(left_out['put_away'], 'memory')} archived",
    }
    return ", ".join(text for name, text in told.items() if left_out[name])
