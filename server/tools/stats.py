"""`memory_stats`: how much is stored, and where (feature T6)."""

from collections.abc import Callable

from speckit_memory.server.envelope import Reply
from speckit_memory.server.markdown import about, fields, one_line
from speckit_memory.server.tools.parameters import Limit
from speckit_memory.server.workspace import Workspace

BUDGET = 800


def build(workspace: Workspace) -> Callable[..., Reply]:
    """The tool over a workspace."""

    def memory_stats(limit: Limit = 10) -> Reply:
        """Count memories by tier and by folder (the `limit` largest folders)."""
        from speckit_memory.memory.store.reading.density import as_fields  # it reads stores, which starting does not

        stats = workspace.memory().stats()
        folders = sorted(stats.by_folder.items(), key=lambda item: (-item[1], item[0]))[:limit]
        by_tier = {str(tier): count for tier, count in stats.by_tier.items()}
        dense = stats.density
        further = {
            "causal edges per memory": f"{dense.edges_per_memory:.2f} ({dense.band})",
            "edges missing": f"{dense.missing} to {dense.next_band}" if dense.next_band else "",
            "trigger phrases": stats.triggers,
            "waiting for vectors": stats.pending_embeddings or "",
            "bytes": stats.bytes,
        }
        return Reply(
            f"{stats.memories} memories, {stats.chunks} passages, {stats.edges} causal links",
            {
                "memories": stats.memories,
                "passages": stats.chunks,
                "causal_links": stats.edges,
                "edge_density": as_fields(dense),
                "trigger_phrases": stats.triggers,
                "pending_embeddings": stats.pending_embeddings,
                "bytes": stats.bytes,
                "by_tier": by_tier,
                "folders": [{"folder": folder, "memories": count} for folder, count in folders],
            },
            rows="folders",
            facts=about(fields(by_tier), fields(further)),
            row_text=lambda _, row: f"- {one_line(row['folder'] or '(root)')}: {row['memories']}",
        )

    return memory_stats
