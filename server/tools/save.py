"""`memory_save`: save a file, or a text as a new file (feature T4)."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.server.calls.parameters import Flag, Keys, Phrases, SessionId, Tier
from speckit_memory.server.calls.unused_parameters import UnusedParameters
from speckit_memory.server.console.markdown import fields, one_line
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

if TYPE_CHECKING:
    from speckit_memory.memory.indexing import SaveResult

BUDGET = 1500
OF_NEW_TEXTS = ("title", "folder", "tier", "triggerPhrases")
"""Parameters for new texts; existing documents declare these values themselves."""


def idle(values: Mapping[str, Any]) -> UnusedParameters | None:
    """The parameters that an existing document, or the path of a new one, makes useless."""
    if values["edit"]:
        return UnusedParameters((*OF_NEW_TEXTS, "asyncEmbedding"), "a document is edited")
    if not values["content"]:
        return UnusedParameters(OF_NEW_TEXTS, "the document is saved unchanged")
    return UnusedParameters(("folder",), "filePath gives the folder") if values["filePath"] else None


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_save(
        filePath: Annotated[  # noqa: N803 -- parameter names of the specification
            str, Field(max_length=500, description="A document of the workspace")
        ] = "",
        content: Annotated[str, Field(max_length=1_000_000, description="Markdown, new or to edit with")] = "",
        title: Annotated[str, Field(max_length=500)] = "",
        folder: Annotated[str, Field(max_length=200, description="Of the new file, named for its title")] = "memories",
        tier: Tier | None = None,
        triggerPhrases: Phrases = [],  # noqa: B006, N803 -- never mutated
        edit: Literal["append", "replace"] | None = None,
        section: Annotated[str, Field(max_length=200, description="To edit: anchor id or heading")] = "",
        force: Annotated[bool, Field(strict=True, description="Save despite problems")] = False,
        dryRun: Annotated[bool, Field(strict=True, description="Only check")] = False,  # noqa: N803
        skipPreflight: Flag = False,  # noqa: N803
        asyncEmbedding: Flag = False,  # noqa: N803
        sessionId: SessionId = "",  # noqa: N803
        supersedes: Annotated[Keys, Field(description="Ids or keys it replaces")] = [],  # noqa: B006
        relates_to: Keys = [],  # noqa: B006
    ) -> Reply:
        """Remember a file, or content as a new file, or edit one.\f

        Args:
            filePath: Document of the workspace; "" for a new one.
            content: Text to store, or to edit with; "" to read the file.
            title: Title of the new document.
            folder: Folder of the new file.
            tier: Tier of the new document; None for the default.
            triggerPhrases: Trigger phrases of the document.
            edit: Whether the text is appended or replaces a section; None to save.
            section: Section to edit, by ANCHOR id or heading.
            force: Whether problems found by the checks are overridden.
            dryRun: Whether the text is only checked.
            skipPreflight: Whether the checks of anchors, duplicates and length are skipped.
            asyncEmbedding: Whether the vectors are made after the reply.
            sessionId: Name of the session; "" for none.
            supersedes: Memories that the document replaces.
            relates_to: Related memories.
        """
        from speckit_memory.server.views.unweighed_inputs import unweighed_tier

        _require_fitting(filePath, content, edit, section)
        path = workspace.document(filePath) if filePath else None
        # resolve both lists at once, so that all unknown names are reported together
        every = _keys(workspace, [*supersedes, *relates_to])
        replaced, related = every[: len(supersedes)], every[len(supersedes) :]
        if edit:
            assert path is not None  # checked by _require_fitting
            saved = workspace.memory().documents.edit(
                workspace.key(path),
                content,
                how=edit,
                section=section,
                force=force,
                dry_run=dryRun,
                skip_preflight=skipPreflight,
                session=sessionId,
                supersedes=replaced,
                relates_to=related,
            )
        elif content:
            # a dry run must not create the store
            saved = workspace.memory(create=not dryRun).documents.write(
                content,
                title=title,
                folder=None if path else folder,
                path=workspace.key(path) if path else "",
                tier=tier or "",
                triggers=triggerPhrases,
                force=force,
                dry_run=dryRun,
                skip_preflight=skipPreflight,
                defer_embedding=asyncEmbedding,
                session=sessionId,
                supersedes=replaced,
                relates_to=related,
            )
        else:
            assert path is not None
            memory = workspace.memory() if dryRun else workspace.memory_to_fill(path)
            saved = memory.documents.save(
                path,
                force=force,
                dry_run=dryRun,
                skip_preflight=skipPreflight,
                defer_embedding=asyncEmbedding,
                session=sessionId,
                supersedes=replaced,
                relates_to=related,
            )
        return _reply(saved, unweighed_tier(workspace.memory(), tier) if saved.id else ())

    return memory_save


def _keys(workspace: Workspace, names: list[str | int]) -> list[str]:
    """The keys of memories. Raises E080 for each unknown one."""
    from speckit_memory.server.console.arguments.memory_names import known_keys

    return known_keys(workspace.memory(), names) if names else []


def _require_fitting(path: str, content: str, edit: str | None, section: str) -> None:
    """Raises E031 for arguments that require others."""
    if not path and not content:
        raise SpeckitError("E031", "memory_save needs 'filePath' or 'content'")
    if edit and not (path and content):
        raise SpeckitError("E031", "to edit a memory, 'filePath' and 'content' are needed")
    if section and not edit:
        raise SpeckitError("E031", "a 'section' needs edit: append or replace")


def _reply(saved: "SaveResult", hints: tuple[str, ...]) -> Reply:
    from speckit_memory.server.views.rows.rows import problem_text
    from speckit_memory.server.views.save_result import saved_data
    from speckit_memory.server.views.save_verdict import describe_verdict, link_lines, question

    data: dict[str, Any] = saved_data(saved)
    verdict, quality = saved.verdict, saved.intake.quality
    asked = question(saved, f"filePath '{saved.key}', supersedes ['{verdict.key}']") if verdict else ""
    outcome = "checked, nothing written" if saved.outcome == "dry_run" else saved.outcome
    return Reply(
        f"{saved.key}: {outcome}",
        data,
        rows="problems",
        facts=fields(
            {
                "id": saved.id or "",
                "tokens": saved.tokens or "",
                "passages": saved.chunks,
                "waiting for vectors": saved.pending or "",
                "verdict": describe_verdict(verdict) if verdict else "",
                "secrets left out": data["redacted"],
                "quality": quality.score if quality and not quality.passed else "",
                "repaired in the store": "; ".join(quality.mended) if quality else "",
            }
        ),
        row_text=problem_text,
        hints=tuple(map(one_line, filter(None, (asked, *link_lines(saved), *hints)))),
    )
