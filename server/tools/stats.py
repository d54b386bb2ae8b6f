"""`memory_stats`: count memories by tier and folder (feature T6)."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from speckit_memory.server.calls.parameters import Flag, Limit, Name
from speckit_memory.server.console.markdown import about, fields, one_line
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.views.store_figures import left_out_text, store_figures
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 800
DATE = len("2026-11-22")


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_stats(
        limit: Limit = 10,
        folderRanking: Literal["count", "recency", "importance", "composite"] = "count",  # noqa: N803 -- parameter names of the specification
        excludePatterns: Annotated[list[Name], Field(max_length=20, description="Regexes")] = [],  # noqa: B006, N803 -- never changed
        includeScores: Flag = False,  # noqa: N803
        includeArchived: Flag = False,  # noqa: N803
    ) -> Reply:
        """Count memories by tier and folder.\f

        Args:
            limit: Maximum number of folders.
            folderRanking: Order of the folders.
            excludePatterns: Regular expressions of folders to leave out.
            includeScores: Whether the score of each folder is sent with its components.
            includeArchived: Whether archived folders and memories are counted.
        """
        from speckit_memory.errors.echo import plural
        from speckit_memory.server.views.rows.rows import when

        memory = workspace.memory()
        ranking = memory.inventory.folders(
            folderRanking, exclude=excludePatterns, scores=includeScores, archived=includeArchived
        )
        stats, kept = memory.inventory.stats(), workspace.answers.figures()
        figures, dense = store_figures(stats, ranking, limit, scores=includeScores), stats.density
        for place, name in [
            (figures, "oldest"),
            (figures, "newest"),
            *((row, "updated") for row in figures["folders"]),
        ]:
            # epoch seconds become ISO 8601; None stays None for an empty store
            place[name] = None if place[name] is None else when(place[name])
        further = {
            "causal edges per memory": f"{dense.edges_per_memory:.2f} ({dense.band})",
            "edges missing": f"{dense.missing} to {dense.next_band}" if dense.next_band else "",
            "trigger phrases": stats.triggers,
            "waiting for vectors": stats.pending_embeddings or "",
            "created": f"{figures['oldest'][:DATE]} to {figures['newest'][:DATE]}" if figures["oldest"] else "",
            "bytes": stats.bytes,
            "answers from the cache": f"{kept.hits} of {kept.hits + kept.misses}" if kept.hits + kept.misses else "",
            "not ranked": left_out_text(figures["left_out"]),
        }
        more = len(ranking.folders) - len(figures["folders"])
        return Reply(
            f"{stats.memories} memories, {stats.chunks} passages, {stats.edges} causal links",
            {**figures, "answer_cache": kept.as_json()},
            hints=(f"{plural(more, 'folder')} more than the first {limit}: raise limit to see them",) if more else (),
            rows="folders",
            facts=about(fields(figures["by_tier"]), fields(further)),
            row_text=lambda _, row: _folder_text(row, folderRanking),
        )

    return memory_stats


def _folder_text(row: dict[str, Any], ranking: str) -> str:
    said = {"updated": (row["updated"] or "unknown")[:DATE]} if ranking == "recency" else {}
    said |= {"score": row["score"], **row["parts"]} if "score" in row else {}
    return "- " + about(f"{one_line(row['folder'] or '(root)')}: {row['memories']}", fields(said))
