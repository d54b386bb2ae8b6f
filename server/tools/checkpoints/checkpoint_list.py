"""`checkpoint_list`: list the checkpoints (feature T13)."""

import json
from collections.abc import Callable
from typing import Any

from speckit_memory.server.calls.parameters import Folder, Limit
from speckit_memory.server.console.markdown import one_line
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 600


def _list_row(_number: int, row: dict[str, Any]) -> str:
    noted = f"; {one_line(json.dumps(row['metadata'], ensure_ascii=False))}" if "metadata" in row else ""
    return f"- {row['name']}: {one_line(row['about'])}{noted}"


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def checkpoint_list(
        specFolder: Folder = "",  # noqa: N803 -- parameter names of the specification
        limit: Limit = 50,
    ) -> Reply:
        """List checkpoints, latest first; of a folder, those of the whole store too."""
        from speckit_memory.errors.echo import plural
        from speckit_memory.server.views.checkpoint_text import as_row, describe_checkpoint

        found = workspace.memory().checkpoints.list(specFolder, limit)
        return Reply(
            plural(len(found), "checkpoint"),
            {"count": len(found), "checkpoints": [as_row(one) | {"about": describe_checkpoint(one)} for one in found]},
            rows="checkpoints",
            row_text=_list_row,
        )

    return checkpoint_list
