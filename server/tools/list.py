"""`memory_list`: browse the memories (feature T5)."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from speckit_memory.server.calls.parameters import Flag, Folder, Limit
from speckit_memory.server.console.markdown import about, fields, one_line
from speckit_memory.server.replies.envelope import Reply, nothing
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 800
DATE = len("2026-11-22")
"""Length of a date; the text omits the time to save tokens."""


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_list(
        limit: Limit = 20,
        offset: Annotated[int, Field(strict=True, ge=0, le=2**63 - 1)] = 0,
        specFolder: Folder = "",  # noqa: N803 -- parameter names of the specification
        sortBy: Literal["created_at", "updated_at", "importance_weight"] = "created_at",  # noqa: N803
        includeChunks: Flag = False,  # noqa: N803
    ) -> Reply:
        """List memories, newest or heaviest first, a page at a time.\f

        Args:
            limit: Maximum number of memories.
            offset: Number of memories to skip.
            specFolder: Folder that limits the call, with all below it; "" for the whole store.
            sortBy: Order: newest, last changed or heaviest first.
            includeChunks: Whether the passages of each memory are sent.
        """
        from speckit_memory.errors.echo import plural
        from speckit_memory.server.views.folder_text import in_folder, missing_folder
        from speckit_memory.server.views.memory_list import PartOfPage, rows_of, with_passages

        memory = workspace.memory()
        memories, total = memory.list(specFolder, sortBy, limit, offset)
        rows = rows_of(memories)
        if includeChunks:
            rows = with_passages(memory, rows)

        def where_to_go_on(shown: int) -> str:
            part = PartOfPage(rows, shown)
            # a memory that is cut is listed again on the next page
            end = offset + part.done
            if not rows and total:
                return f"nothing at offset={offset}: the first memory is at offset=0, the last at offset={total - 1}"
            more = f"{total - end} more: continue with offset={end}" if part.done and end < total else ""
            if not part.is_cut:
                return more
            rest = "they come again" if part.done < part.memories else "memory_search with its key reads all of it"
            return "; ".join(filter(None, [f"{one_line(part.told_cut())}, {rest}", more]))

        def apart(shown: int) -> dict[str, int]:
            part = PartOfPage(rows, shown)
            return {"count": part.memories, "passage_count": part.passages}

        return Reply(
            f"{plural(total, 'memory')} stored{in_folder(specFolder)}",
            {"total": total, "offset": offset, "memories": rows},
            tuple(filter(None, [missing_folder(memory, specFolder)])),
            rows="memories",
            unit="memories and passages" if includeChunks else "",
            again=nothing,
            row_text=_memory_text,
            hint_of_count=where_to_go_on,
            figures_of_count=apart if includeChunks else None,
        )

    return memory_list


def _memory_text(_number: int, memory: dict[str, Any]) -> str:
    from speckit_memory.server.views.memory_list import is_passage, passage_text

    if is_passage(memory):
        return f"  - {one_line(passage_text(memory))}"
    more: dict[str, Any] = {name: memory[name] for name in ("confidence", "validations", "promoted") if name in memory}
    title = memory["title"] if memory["title"] != memory["key"] else ""
    tier = memory["tier"] if memory["tier"] != "normal" else ""
    return "- " + about(memory["key"], title, f"id {memory['id']}", tier, memory["updated"][:DATE], fields(more))
