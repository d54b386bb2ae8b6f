"""`memory_stats`: how much is stored, and where (feature T6)."""

from collections.abc import Callable

from speckit_memory.server.envelope import Reply
from speckit_memory.server.markdown import about, fields, one_line
from speckit_memory.server.store_figures import store_figures
from speckit_memory.server.tools.parameters import Limit
from speckit_memory.server.workspace import Workspace

BUDGET = 800


def build(workspace: Workspace) -> Callable[..., Reply]:
    """The tool over a workspace."""

    def memory_stats(limit: Limit = 10) -> Reply:
        """Count memories by tier and folder (the `limit` largest)."""
        stats, kept = workspace.memory().stats(), workspace.answers.figures()
        figures, dense = store_figures(stats, limit), stats.density
        further = {
            "causal edges per memory": f"{dense.edges_per_memory:.2f} ({dense.band})",
            "edges missing": f"{dense.missing} to {dense.next_band}" if dense.next_band else "",
            "trigger phrases": stats.triggers,
            "waiting for vectors": stats.pending_embeddings or "",
            "bytes": stats.bytes,
            "answers given again": f"{kept.hits} of {kept.hits + kept.misses}" if kept.hits + kept.misses else "",
        }
        return Reply(
            f"{stats.memories} memories, {stats.chunks} passages, {stats.edges} causal links",
            {**figures, "answer_cache": kept.as_json()},
            rows="folders",
            facts=about(fields(figures["by_tier"]), fields(further)),
            row_text=lambda _, row: f"- {one_line(row['folder'] or '(root)')}: {row['memories']}",
        )

    return memory_stats
