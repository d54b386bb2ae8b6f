"""`memory_index_scan`: update the store from the workspace (feature T22)."""

import os
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from speckit_memory.config.files.paths import is_there
from speckit_memory.errors import SpeckitError
from speckit_memory.server.calls.parameters import Flag, Folder
from speckit_memory.server.console.markdown import fields
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.replies.worker_calls import close_to_equal_calls
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 1000
MOST_MOVES = 20
"""Renamed documents listed; all are counted."""


def equal(workspace: Workspace) -> Callable[[Mapping[str, Any]], Hashable]:
    """Returns the key by which concurrent calls share an answer: the normalised folder and the options."""

    def key(values: Mapping[str, Any]) -> Hashable:
        # "docs", "./docs" and "docs/" share one scan
        folder = os.path.normpath(workspace.config.root / values["specFolder"])
        read_again = values["force"] or not values["incremental"]
        return folder, read_again, values["includeConstitutional"], values["includeSpecDocs"]

    return key


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_index_scan(
        specFolder: Folder = "",  # noqa: N803 -- parameter names of the specification
        force: Annotated[bool, Field(strict=True, description="Read unchanged files again")] = False,
        incremental: Flag = True,
        includeConstitutional: Flag = True,  # noqa: N803
        includeSpecDocs: Flag = True,  # noqa: N803
    ) -> Reply:
        """Index new and changed documents; hide memories whose files are gone.\f

        Args:
            specFolder: Folder to index; "" for all sources.
            force: Whether unchanged files are read again.
            incremental: Whether unchanged files are skipped.
            includeConstitutional: Whether constitutional documents are indexed.
            includeSpecDocs: Whether specification documents are indexed.
        """
        from speckit_memory.server.views.absent_files_text import absence_lines
        from speckit_memory.server.views.rows.rows import problem_text
        from speckit_memory.server.views.save_verdict import describe_verdict

        folder = workspace.folder(specFolder)
        index = partial(
            workspace.memory_to_fill(folder).index,
            [folder],
            progress=workspace.on_progress,
            include_constitutional=includeConstitutional,
            include_spec_docs=includeSpecDocs,
        )
        report = index(force=force or not incremental)
        if close_to_equal_calls():
            # a file may have changed after it was read but before the last caller joined: scan again
            report = report.followed_by(index())
        # the folder itself is missing: an error rather than an empty report
        if report.failures and not is_there(folder):
            raise SpeckitError.of(report.failures)
        counts = {name: len(getattr(report, name)) for name in ("created", "updated", "renamed", "unchanged", "absent")}
        moves = [move.as_json() for move in report.renamed[:MOST_MOVES]]
        return Reply(
            ", ".join(f"{count} {name}" for name, count in counts.items()),
            {
                **counts,
                "deleted": len(report.deleted),
                "returned": len(report.returned),
                "moves": moves,
                "passages": report.chunks,
                "embedding_pending": report.pending,
                "ignored": len(report.ignored),
                "redacted": report.redacted,
                "recalled": report.recalled,
                "mended": report.mended,
                "verdicts": {key: verdict.as_json() for key, verdict in report.verdicts.items()},
                "failed": len(report.failures),
                "problems": [
                    {"code": p.code, "message": f"{p.where}: {p.message}" if p.where else p.message}
                    for p in (*report.failures, *report.problems)
                ],
            },
            hints=tuple(absence_lines(report)),
            rows="problems",
            facts=fields(
                {
                    "passages": report.chunks,
                    "waiting for vectors": report.pending or "",
                    "renamed": [f"{move['from']} -> {move['to']}" for move in moves],
                    "secrets left out": report.redacted,
                    "verdicts": [f"{key}: {describe_verdict(verdict)}" for key, verdict in report.verdicts.items()],
                }
            ),
            row_text=problem_text,
        )

    return memory_index_scan
