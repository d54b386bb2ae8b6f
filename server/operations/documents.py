"""Save and change documents (features T4, T8 and T22)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from speckit_memory.config.files.paths import is_there, named_path
from speckit_memory.errors import SpeckitError
from speckit_memory.server.calls.unused_parameters import UnusedParameters
from speckit_memory.server.console import completion
from speckit_memory.server.console.arguments.typed_text import standard_input
from speckit_memory.server.console.markdown import one_line
from speckit_memory.server.operations.fields import ID_OR_KEY, Flag, Folder, Keys, MemoryKey, Phrases, Session, Tier
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, Tool, View, operation

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.memory.indexing import SaveResult
    from speckit_memory.server.workspace.workspace import Workspace

OF_NEW_TEXTS = ("title", "folder", "tier", "triggerPhrases")
"""Parameters for new texts; existing documents declare these values themselves."""
MOST_MOVES = 20
"""Renamed documents listed; all are counted."""


class DocumentSave(Parameters):
    file: Annotated[
        str,
        Field(max_length=500),
        Option(
            "A document of the workspace.",
            tool="filePath",
            brief="A document of the workspace",
            argument=True,
            complete=completion.files,
        ),
    ] = ""
    content: Annotated[
        str,
        Field(max_length=1_000_000),
        Option("The text to store, '-' for standard input.", brief="Markdown, new or to edit with", metavar="TEXT|-"),
    ] = ""
    title: Annotated[str, Field(max_length=500), Option("The title of the new document.")] = ""
    folder: Annotated[
        Annotated[str, Field(max_length=200)] | None,
        Option(
            "The folder of the new file, else 'memories'.", brief="Of the new file, else memories; named for its title"
        ),
    ] = None
    tier: Annotated[Tier | None, Option("The tier of the new document.")] = None
    triggers: Annotated[
        Phrases, Option("A trigger phrase of the document.", tool="triggerPhrases", command="--trigger")
    ] = []
    edit: Annotated[Literal["append", "replace"] | None, Option("How to edit.", command=None)] = None
    append: Annotated[Flag, Option("Add the text to FILE, or to a section of it.", tool=None)] = False
    replace: Annotated[Flag, Option("Replace a section of FILE by the text.", tool=None)] = False
    section: Annotated[
        str,
        Field(max_length=200),
        Option("The section, by ANCHOR id or heading.", brief="To edit: anchor id or heading"),
    ] = ""
    force: Annotated[Flag, Option("Save despite problems found by the checks.", brief="Save despite problems")] = False
    dry_run: Annotated[
        Flag, Option("Only check, and show how the text relates to existing memories.", brief="Only check")
    ] = False
    skip_preflight: Annotated[Flag, Option("Skip the checks of anchors, duplicates and length.")] = False
    async_embedding: Annotated[Flag, Option("Make the vectors after the reply.", command=None)] = False
    session: Session = ""
    supersedes: Annotated[
        Keys, Option("A memory that it replaces.", brief="Ids or keys it replaces", metavar=ID_OR_KEY)
    ] = []
    relates_to: Annotated[Keys, Option("A related memory.", tool="relates_to", metavar=ID_OR_KEY)] = []


def _unused(values: Mapping[str, Any]) -> UnusedParameters | None:
    """The parameters that an existing document, or the path of a new one, makes useless."""
    if values["edit"]:
        return UnusedParameters((*OF_NEW_TEXTS, "asyncEmbedding"), "a document is edited")
    if not values["content"]:
        return UnusedParameters(OF_NEW_TEXTS, "the document is saved unchanged")
    return UnusedParameters(("folder",), "filePath gives the folder") if values["filePath"] else None


@operation(
    "daily",
    "save",
    Tool(
        "memory_save",
        "Save memory",
        "Remember a file, or content as a new file, or edit one.",
        budget=1500,
        core=True,
        unused=_unused,
    ),
    repeatable=False,
    destroys=True,
)
def save(call: Call, params: DocumentSave) -> View:
    """Check and store one FILE, or a text as a new Markdown file.

    The new file is FILE, or one named after the title; no file is ever overwritten. With --append or --replace the text
    goes into the FILE of a memory. Links to superseded and related memories are written into the front matter, under
    `causalLinks`.
    """
    from speckit_memory.server.console.arguments.memory_names import known_keys
    from speckit_memory.server.views.unweighed_inputs import unweighed_tier

    edit = params.edit or ("append" if params.append else "replace" if params.replace else None)
    _require_fitting(call, params, edit)
    content = standard_input() if call.common and params.content == "-" else params.content
    document = _Document.of(call, params.file)
    named = [*params.supersedes, *params.relates_to]
    # both lists at once, so that all unknown names are reported together, and before a store is created
    every = known_keys(call.memory(), named) if named else []
    memory = document.memory(call, params, is_new=bool(content and not edit))
    how: dict[str, Any] = {
        "force": params.force,
        "dry_run": params.dry_run,
        "skip_preflight": params.skip_preflight,
        "session": params.session,
        "supersedes": every[: len(params.supersedes)],
        "relates_to": every[len(params.supersedes) :],
    }
    if edit:
        saved = memory.documents.edit(document.name(memory), content, how=edit, section=params.section, **how)
    elif content:
        saved = memory.documents.write(
            content,
            title=params.title,
            folder=None if params.file and call.workspace else params.folder,
            path=document.key,
            tier=params.tier or "",
            triggers=params.triggers,
            defer_embedding=params.async_embedding,
            **how,
        )
    else:
        assert document.path is not None  # checked by _require_fitting
        saved = memory.documents.save(document.path, defer_embedding=params.async_embedding, **how)
    return _saved_view(call, saved, unweighed_tier(memory, params.tier) if saved.id else ())


class _Document:
    """The document that a call names: a path, and its key for writing."""

    def __init__(self, typed: str, path: Path | None, key: str) -> None:
        self._typed = typed
        self.path = path
        self.key = key

    @classmethod
    def of(cls, call: Call, typed: str) -> _Document:
        """The document with this name; a client names only documents inside the workspace. Raises E014."""
        if not typed:
            return cls("", None, "")
        if workspace := call.workspace:
            path = workspace.document(typed)
            return cls(workspace.key(path), path, workspace.key(path))
        path = named_path(typed).absolute()
        return cls(typed, path, str(path))

    def name(self, memory: Memory) -> str:
        """The key of the memory to edit. Raises E080 with the nearest keys."""
        from speckit_memory.server.console.arguments.memory_names import known_key

        return known_key(memory, self._typed)

    def memory(self, call: Call, params: DocumentSave, *, is_new: bool) -> Memory:
        """The memory to save in. A missing store is created, but not for a dry run or a missing file."""
        from speckit_memory.memory.store.file.guarding.store_file import store_is_there

        if self.path is None or is_new:
            return call.memory(create=not params.dry_run)
        if call.workspace:
            return call.memory() if params.dry_run or params.edit else call.workspace.memory_to_fill(self.path)
        if not store_is_there(call.config.db) and not is_there(self.path):
            raise SpeckitError("E010", f"{self._typed}: there is no such file")
        return call.memory(create=not params.dry_run)


def _require_fitting(call: Call, params: DocumentSave, edit: str | None) -> None:
    """Raises E031 for parameters that require others, or exclude one another."""
    if not params.file and not params.content:
        raise SpeckitError(
            "E031", call.way("a FILE or --content is needed", "memory_save needs 'filePath' or 'content'")
        )
    if params.append and params.replace:
        raise SpeckitError("E031", "--append and --replace exclude each other")
    if edit and not (params.file and params.content):
        needed = call.way(f"--{edit} needs FILE and --content", "to edit a memory, 'filePath' and 'content' are needed")
        raise SpeckitError("E031", needed)
    if params.section and not edit:
        needed = call.way("--section goes with --append or --replace", "a 'section' needs edit: append or replace")
        raise SpeckitError("E031", needed)
    describes = params.title or params.folder or params.tier or params.triggers
    if call.common and describes and (edit or not params.content):
        raise SpeckitError("E031", "--title, --folder, --tier and --trigger go with --content for a new file")


def _saved_view(call: Call, saved: SaveResult, hints: tuple[str, ...]) -> View:
    from speckit_memory.server.views.save_verdict import describe_verdict, link_lines, question

    verdict, intake = saved.verdict, saved.intake
    quality, asked = intake.quality, ""
    if verdict:
        option = f"--supersedes {shlex.quote(verdict.key)}"
        # the document of a dry run of a text does not exist
        dry = saved.outcome == "dry_run"
        again = f"the same command with {option}" if dry else f"speckit-memory save {shlex.quote(saved.key)} {option}"
        asked = question(saved, call.way(again, f"filePath '{saved.key}', supersedes ['{verdict.key}']"))
    return View(
        f"{saved.key}: {'checked, nothing written' if saved.outcome == 'dry_run' else saved.outcome}",
        {
            "id": saved.id,
            "key": saved.key,
            "outcome": saved.outcome,
            "tokens": saved.tokens,
            "passages": saved.chunks,
            "embedding_pending": saved.pending,
            "duplicates": list(saved.duplicates),
            "verdict": verdict.as_json() if verdict else None,
            "quality": quality.as_json() if quality else None,
            "memory_type": intake.memory_type._asdict(),
            "redacted": intake.redacted(),
            "recalled": len(intake.recalled),
            "links": [link._asdict() for link in saved.links],
            "problems": [problem.as_json() for problem in saved.problems],
        },
        facts={
            "id": saved.id or "",
            "tokens": saved.tokens or "",
            "passages": saved.chunks,
            "waiting for vectors": saved.pending or "",
            "verdict": describe_verdict(verdict) if verdict else "",
            "secrets left out": intake.redacted(),
            "quality": quality.score if quality and not quality.passed else "",
            "repaired in the store": "; ".join(quality.mended) if quality else "",
        },
        rows="problems",
        cells=_problem_cells,
        hints=tuple(map(one_line, filter(None, (asked, *link_lines(saved), *hints)))),
    )


def _problem_cells(row: Row) -> tuple[str, ...]:
    return f"{row['code']} {row['message']}", row.get("hint", "")


class DocumentUpdate(Parameters):
    key: MemoryKey
    title: Annotated[Annotated[str, Field(min_length=1, max_length=500)] | None, Option("The new title.")] = None
    triggers: Annotated[
        Phrases | None,
        Option("A trigger phrase.", tool="triggerPhrases", command="--trigger", metavar="PHRASE"),
    ] = None
    no_triggers: Annotated[Flag, Option("Remove all trigger phrases.", tool=None)] = False
    weight: Annotated[
        Annotated[float, Field(ge=0, le=1)] | None, Option("The importance weight.", tool="importanceWeight")
    ] = None
    tier: Annotated[Tier | None, Option("The tier.", tool="importanceTier")] = None
    partial: Annotated[
        Flag,
        Option("Keep the change even if the model cannot embed the memory again.", tool="allowPartialUpdate"),
    ] = False


@operation(
    "daily",
    "update",
    Tool("memory_update", "Update memory", "Change title, triggers, weight or tier of a memory, in its file.", 500),
    destroys=True,
)
def update(call: Call, params: DocumentUpdate) -> View:
    """Change title, trigger phrases, tier or weight of a memory in its file.

    The front matter is edited and indexed again. Given phrases replace all declared ones.
    """
    from speckit_memory.engine.runtime.pending_vectors import WHO_EMBEDS
    from speckit_memory.server.console.arguments.memory_names import known_key
    from speckit_memory.server.views.rows.rows import update_facts
    from speckit_memory.server.views.unweighed_inputs import unweighed_hint

    if params.triggers and params.no_triggers:
        raise SpeckitError("E031", "--trigger and --no-triggers exclude each other")
    memory = call.memory()
    updated = memory.documents.update(
        known_key(memory, params.key),
        title=params.title,
        triggers=() if params.no_triggers else params.triggers,
        tier=params.tier,
        weight=params.weight,
        allow_partial=params.partial,
    )
    before, after = update_facts(updated.before), update_facts(updated.after)
    changed = {name: value for name, value in after.items() if value != before[name]}
    was = {name: before[name] for name in changed}
    key = updated.after.key
    return View(
        f"{key}: {', '.join(changed)} changed, in its file too"
        if changed
        else f"{key}: nothing changed, it has these values already",
        {"id": updated.after.id, "key": key, "changed": changed, "was": was, "embedding_pending": updated.pending},
        facts=changed,
        hints=(
            *unweighed_hint(memory, changed, {before["importanceTier"], after["importanceTier"]}),
            *[f"lexical search finds it already; vectors follow: {WHO_EMBEDS}"] * updated.pending,
        ),
    )


class IndexScan(Parameters):
    folder: Annotated[Folder, Option("Folder to index; all sources without one.", tool="specFolder")] = ""
    force: Annotated[Flag, Option("Read unchanged files again.", brief="Read unchanged files again")] = False
    incremental: Annotated[Flag, Option("Skip unchanged files.")] = True
    include_constitutional: Annotated[Flag, Option("Index constitutional documents.", advanced=True)] = True
    include_spec_docs: Annotated[Flag, Option("Index specification documents.", advanced=True)] = True


def _equal(workspace: Workspace) -> Callable[[Mapping[str, Any]], Hashable]:
    """Returns the key by which concurrent calls share an answer: the normalised folder and the options."""

    def key(values: Mapping[str, Any]) -> Hashable:
        # "docs", "./docs" and "docs/" share one scan
        folder = os.path.normpath(workspace.config.root / values["specFolder"])
        read_again = values["force"] or not values["incremental"]
        return folder, read_again, values["includeConstitutional"], values["includeSpecDocs"]

    return key


@operation(
    "daily",
    "",
    Tool(
        "memory_index_scan",
        "Index files",
        "Index new and changed documents; hide memories whose files are gone.",
        lengthy=True,
        core=True,
        equal=_equal,
    ),
    one_door="the command is `index`, which takes paths and shows what happens to each file",
    destroys=True,
)
def index_scan(call: Call, params: IndexScan) -> View:
    """Index new and changed documents of the workspace."""
    from speckit_memory.server.replies.worker_calls import close_to_equal_calls
    from speckit_memory.server.views.absent_files_text import absence_lines
    from speckit_memory.server.views.save_verdict import describe_verdict

    workspace = call.workspace
    assert workspace is not None  # there is no command
    folder = workspace.folder(params.folder)
    index = partial(
        workspace.memory_to_fill(folder).index,
        [folder],
        progress=workspace.on_progress,
        include_constitutional=params.include_constitutional,
        include_spec_docs=params.include_spec_docs,
    )
    report = index(force=params.force or not params.incremental)
    if close_to_equal_calls():
        # a file may have changed after it was read but before the last caller joined: scan again
        report = report.followed_by(index())
    # the folder itself is missing: an error rather than an empty report
    if report.failures and not is_there(folder):
        raise SpeckitError.of(report.failures)
    counts = {name: len(getattr(report, name)) for name in ("created", "updated", "renamed", "unchanged", "absent")}
    moves = [move.as_json() for move in report.renamed[:MOST_MOVES]]
    return View(
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
        facts={
            "passages": report.chunks,
            "waiting for vectors": report.pending or "",
            "renamed": [f"{move['from']} -> {move['to']}" for move in moves],
            "secrets left out": report.redacted,
            "verdicts": [f"{key}: {describe_verdict(verdict)}" for key, verdict in report.verdicts.items()],
        },
        rows="problems",
        cells=_problem_cells,
        hints=tuple(absence_lines(report)),
    )
