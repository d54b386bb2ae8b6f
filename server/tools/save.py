"""`memory_save`: remember one file (feature T4)."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from speckit_memory.server.envelope import Reply
from speckit_memory.server.markdown import fields
from speckit_memory.server.tools.parameters import Flag, SessionId
from speckit_memory.server.workspace import Workspace

BUDGET = 1500


def build(workspace: Workspace) -> Callable[..., Reply]:
    """The tool over a workspace."""

    def memory_save(
        filePath: Annotated[  # noqa: N803 -- parameter names of the specification
            str, Field(min_length=1, max_length=500, description="A Markdown or text file of the workspace")
        ],
        force: Annotated[bool, Field(strict=True, description="Save despite problems found by the checks")] = False,
        dryRun: Annotated[bool, Field(strict=True, description="Only check")] = False,  # noqa: N803
        asyncEmbedding: Flag = False,  # noqa: N803
        sessionId: SessionId = "",  # noqa: N803
    ) -> Reply:
        """Remember one file, or bring its memory up to date, after checking it."""
        from speckit_memory.server.saving_text import told
        from speckit_memory.server.tools.rows import problem_text

        path = workspace.document(filePath)
        memory = workspace.memory() if dryRun else workspace.memory_to_fill(path)
        saved = memory.save_file(path, force=force, dry_run=dryRun, defer_embedding=asyncEmbedding, session=sessionId)
        outcome = "checked, nothing written" if saved.outcome == "dry_run" else saved.outcome
        verdict, intake = saved.verdict, saved.intake
        return Reply(
            f"{saved.key}: {outcome}",
            {
                "id": saved.id,
                "key": saved.key,
                "outcome": saved.outcome,
                "tokens": saved.tokens,
                "passages": saved.chunks,
                "embedding_pending": saved.pending,
                "duplicates": list(saved.duplicates),
                "verdict": verdict.as_json() if verdict else None,
                "quality": intake.quality.as_json() if intake.quality else None,
                "memory_type": intake.memory_type._asdict(),
                "redacted": intake.redacted(),
                "recalled": len(intake.recalled),
                "problems": [problem.as_json() for problem in saved.problems],
            },
            rows="problems",
            facts=fields(
                {
                    "id": saved.id or "",
                    "tokens": saved.tokens,
                    "passages": saved.chunks,
                    "waiting for vectors": saved.pending or "",
                    "verdict": told(verdict) if verdict else "",
                    "secrets left out": intake.redacted(),
                    "quality": intake.quality.score if intake.quality and not intake.quality.passed else "",
                    "mended as stored": "; ".join(intake.quality.mended) if intake.quality else "",
                }
            ),
            row_text=problem_text,
        )

    return memory_save
