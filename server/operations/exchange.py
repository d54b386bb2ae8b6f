"""Move memories between stores: export and import (feature I13), copies of whole stores and their verification."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

from pydantic import Field

from speckit_memory.config.files.paths import named_path
from speckit_memory.config.workspace.settings import settings
from speckit_memory.config.workspace.store_address import ADDRESS, is_address
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.server.operations.fields import RARE, DryRun, Flag, InFolder, Name
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, View, operation

LISTED = 10
OUTCOMES = ("created", "updated", "unchanged", "kept", "refused")


class StoreExport(Parameters):
    directory: Annotated[Path, Option("The folder to write into.", argument=True, metavar="DIR")]
    folder: InFolder = ""


@operation("administration", "export", one_door=RARE)
def export(call: Call, params: StoreExport) -> View:
    """Write every memory into DIR as a file that people can read and edit.

    Everything that was learned about a memory is written next to it. DIR is created, or must be empty or hold an
    earlier export, which is updated. `import` restores all of it, here or elsewhere.
    """
    done = call.memory().exchange.export(params.directory, folder=params.folder)
    files = f"{plural(done.written, 'file')} written" + (f", {done.removed} removed" if done.removed else "")
    named = [*done.without_file[:LISTED], *(["…"] if len(done.without_file) > LISTED else [])]
    return View(
        f"{done.path}: {plural(done.memories, 'memory')}, {files}",
        {
            "path": str(done.path),
            "memories": done.memories,
            "written": done.written,
            "removed": done.removed,
            "without_file": list(done.without_file),
            "secrets": done.secrets,
        },
        facts={
            "secrets left out of the texts": done.secrets or "",
            "written from the store, as the file is missing": named,
        },
    )


class StoreImport(Parameters):
    source: Annotated[Path, Option("An export, a folder of documents, or a single one.", argument=True)]
    merge: Annotated[Flag, Option("Keep memories that are newer here; the default without --replace.")] = False
    replace: Annotated[Flag, Option("Take texts and learned data from SOURCE, even where those here are newer.")] = (
        False
    )
    into: Annotated[
        Name | None,
        Option("The folder for documents that are not an export; else one named like SOURCE.", metavar="FOLDER"),
    ] = None
    dry_run: DryRun = False


@operation("administration", "import", one_door=RARE, destroys=True)
def import_memories(call: Call, params: StoreImport) -> View:
    """Import the memories of SOURCE: an export, a folder of documents, or a single one.

    Missing files are created. The import is all or nothing. Before something is replaced, a checkpoint is made and
    files are copied aside. Exits with 1 when memories were refused.
    """
    from speckit_memory.engine.runtime.pending_vectors import WHO_EMBEDS

    if params.merge and params.replace:
        raise SpeckitError("E031", "--merge or --replace, not both")
    with call.progress("importing") as progress:
        done = call.memory(create=not params.dry_run).exchange.import_from(
            params.source,
            replace=params.replace,
            into=params.into,
            dry_run=params.dry_run,
            progress=lambda now: progress(now.done, now.total or 0),
        )
    counts = {outcome: done.count(outcome) for outcome in OUTCOMES}
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    waiting = f"{plural(done.pending, 'passage')} without vectors: {WHO_EMBEDS}"
    return View(
        f"{told}{'; nothing was changed (dry run)' if done.dry_run else ''}",
        {
            "dry_run": done.dry_run,
            **counts,
            "memories": [{"key": one.key, "outcome": one.outcome, "why": one.why} for one in done.memories],
            "written": list(done.written),
            "checkpoint": done.checkpoint or None,
            "aside": str(done.aside) if done.aside else None,
            "left_out": done.left_out,
            "pending": done.pending,
        },
        facts={
            "written to the workspace": plural(len(done.written), "file") if done.written else "",
            "the store before the import is kept as": done.checkpoint,
            "overwritten files were copied to": str(done.aside) if done.aside else "",
            "left out": f"{plural(done.left_out, 'link')} to missing memories" if done.left_out else "",
        },
        rows="memories",
        cells=_imported_cells,
        hints=(waiting,) if done.pending else (),
        status=1 if counts["refused"] else 0,
    )


def _imported_cells(row: Row) -> tuple[str, ...]:
    return (f"{row['outcome']} {row['key']}{': ' if row['why'] else ''}{row['why']}",)


STORE = f"the path of a store file, or {ADDRESS}"
Store = Annotated[str, Field(min_length=1, max_length=4096)]
_OPERATORS = "an operator moves a store between machines; an agent works in the store that it is given"


def _place(store: str, name: str) -> Path:
    """The file of a store, or the store link of its address."""
    return settings(store).db if is_address(store) else named_path(store, name)


class StoreCopyParameters(Parameters):
    source: Annotated[Store, Option(f"The store: {STORE}.", argument=True, metavar="FROM")]
    target: Annotated[Store, Option("Where it is copied to; nothing may be there.", argument=True, metavar="TO")]


@operation("administration", "store copy", one_door=_OPERATORS, shared=("json",))
def copy(call: Call, params: StoreCopyParameters) -> View:
    """Copy a store to a new place: FROM and TO are files or postgresql://… addresses.

    Ids, history, words, vectors, the embedding cache, checkpoints, deletions and the evaluation database are copied,
    and every table is compared at the end. Others may use FROM meanwhile. TO is refused as unfinished until then. After
    an interruption, the same command continues.
    """
    from speckit_memory.memory.exchange.store_copy import copy_store

    source, target = _place(params.source, "FROM"), _place(params.target, "TO")
    with call.progress("copying") as progress:
        done = copy_store(source, target, progress)
    told = sum(table.rows for table in done.tables)
    return View(
        f"{params.target}: {plural(done.memories, 'memory')}, {told:,} rows in {len(done.tables)} tables, all equal",
        {
            "from": params.source,
            "to": params.target,
            "memories": done.memories,
            "checkpoints": done.checkpoints,
            "deletions": done.deletions,
            "evaluation": done.evaluation,
            "tables": [{"name": one.name, "rows": one.rows, "digest": one.digest} for one in done.tables],
        },
        facts={
            "checkpoints": done.checkpoints or "",
            "deletions": done.deletions or "",
            "evaluation database": "copied" if done.evaluation else "",
        },
        hints=(f"`speckit-memory store verify {quote(params.source)} {quote(params.target)}` compares answers",),
    )


class StoreVerification(Parameters):
    first: Annotated[Store, Option(f"A store: {STORE}.", argument=True, metavar="A")]
    second: Annotated[Store, Option("The other store.", argument=True, metavar="B")]
    questions: Annotated[
        int, Field(strict=True, ge=1, le=10_000), Option("Number of questions; up to half are recorded ones of A.")
    ] = 200
    seed: Annotated[int, Field(strict=True, ge=0, le=2**31 - 1), Option("Seeds the choice of questions.")] = 20


@operation("administration", "store verify", one_door=_OPERATORS, reads=True, shared=("json", "verbose"))
def verify(call: Call, params: StoreVerification) -> View:
    """Certify that the stores A and B give equal answers; exit with 1 if they do not.

    Both are asked recorded questions of A, and questions made of its memories, through the pipeline in use. Ids must be
    equal and scores within 0.000001. Nothing is written to either store.
    """
    from speckit_memory.evaluation.comparing.store_parity import verify_stores

    with call.progress("asking") as progress:
        certificate = verify_stores(
            _place(params.first, "A"),
            _place(params.second, "B"),
            questions=params.questions,
            seed=params.seed,
            progress=progress,
        )
    report = certificate.as_report()
    return View(report.verdict, dict(report.data), reports=(report,), status=int(not certificate.equal))
