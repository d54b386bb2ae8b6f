"""Builds the reply on a deletion (features T9 and T11)."""

from typing import TYPE_CHECKING, Any

from speckit_memory.server.console.markdown import about, one_line
from speckit_memory.server.replies.envelope import Reply

if TYPE_CHECKING:
    from speckit_memory.engine.api.deletions import DeletionResult


def deleted_reply(deleted: "DeletionResult", dry_run: bool) -> Reply:
    """The deleted memories, and how to undo the deletion."""
    from speckit_memory.server.views.deleted_text import LISTED, deleted_data, describe_deletion

    hints = []
    if deleted.name:
        hints.append(f'to undo it: memory_delete with undo="{deleted.name}"')
    if deleted.checkpoint:
        hints.append(f"the state before it is the checkpoint {deleted.checkpoint}")
    total = len(deleted.memories)
    return Reply(
        describe_deletion(deleted, dry_run),
        deleted_data(deleted, dry_run),
        tuple(hints),
        rows="memories",
        row_text=_row_text,
        figures_of_count=lambda _shown: {"count": total},
        hint_of_count=lambda shown: f"{shown} of {total:,} are listed" if total > LISTED else "",
    )


def _row_text(_number: int, row: dict[str, Any]) -> str:
    return "- " + about(one_line(row["key"]), f"id {row['id']}", row["tier"])
