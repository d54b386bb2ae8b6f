"""`index`: updates the store from files and folders."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import click

from speckit_memory.config.files.paths import is_there, named_paths
from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.errors.echo import abridge, plural
from speckit_memory.memory.store.file.guarding.store_file import store_is_there
from speckit_memory.server.console import completion
from speckit_memory.server.console.failures import show as show_failure
from speckit_memory.server.console.failures import show_problems
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.operations.fields import Flag
from speckit_memory.server.operations.operation import Option, Parameters, operation
from speckit_memory.server.views.file_changes import changes, require_watching, until_told_to_end

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.memory.indexing import IndexProgress, IndexReport
    from speckit_memory.server.console.arguments.options import Common
    from speckit_memory.server.operations.command_line import CommandCall

OUTCOMES = ("created", "updated", "renamed", "unchanged", "deleted")
CHANGES = ("created", "updated", "renamed", "deleted", "vanished", "returned")
COUNTS = ("chunks", "characters", "embedded", "cache_hits", "pending", "links", "recalled", "mended")
SHOWN_PROBLEMS = 20


class IndexRun(Parameters):
    paths: Annotated[list[str], Option("Files and folders.", argument=True, metavar="PATH", complete=completion.files)]
    force: Annotated[Flag, Option("Read unchanged files again.")] = False
    forget: Annotated[
        Flag, Option("Remove the paths from the sources, and delete the memories that no other source holds.")
    ] = False
    dry_run: Annotated[Flag, Option("Show what would be done and write nothing.")] = False
    watch: Annotated[
        Flag,
        Option("Keep running and index again whenever a file changes, until interrupted. Needs the extra 'watch'."),
    ] = False


@operation(
    "daily",
    "index",
    one_door="the tool is memory_index_scan, which takes a folder and tells less of each file",
    destroys=True,
)
def index(call: CommandCall, params: IndexRun) -> int:
    """Index files and folders: new, changed and missing ones.

    Unchanged files cost next to nothing. A memory whose file is missing is left out of searches and kept for 90 days,
    until the file is back.

    A path given here is indexed and remembered as a source even if it is hidden or ignored; a later run over a folder
    above keeps it. Below a folder, files excluded by .gitignore or by sources.exclude of .speckit/config.yaml are left
    out.
    """
    common, paths, force, watch, dry_run = call.common, params.paths, params.force, params.watch, params.dry_run
    if params.forget:
        if force or watch:
            raise click.UsageError("--forget goes with --dry-run alone", click.get_current_context())
        memory = call.memory()
        return _print_report(common, memory, memory.documents.forget(paths, dry_run=dry_run), 0.0)
    if watch and dry_run:
        raise click.UsageError("--watch and --dry-run exclude each other", click.get_current_context())
    _refuse_an_empty_start(common, paths)
    if watch:
        require_watching()
    with _opened(common, dry_run) as memory:
        if not watch:
            return index_once(common, memory, paths, force, dry_run)
        with until_told_to_end() as ended:
            for run, _ in enumerate(changes(named_paths(paths), memory.session.settings.root, ended)):
                try:
                    status = index_once(common, memory, paths, force and run == 0, False)
                    if run == 0 and not any(map(is_there, named_paths(paths))):
                        return status  # probably a typing error; paths that vanish later may come back
                except SpeckitError as error:
                    if run == 0:
                        raise
                    show_failure(error, common.as_json)  # the next change may correct the problem
        return 0


@contextmanager
def _opened(common: Common, dry_run: bool) -> Iterator[Memory]:
    """The store; for a dry run without a store a temporary one, because a dry run must leave nothing behind."""
    from speckit_memory.engine import Memory

    config = settings(common.db)
    if not dry_run or store_is_there(config.db):
        with common.open() as memory:
            yield memory
        return
    with (
        TemporaryDirectory(prefix="speckit-dry-run-", ignore_cleanup_errors=True) as temporary,
        Memory.open(Path(temporary) / config.db.name, root=config.root) as memory,
    ):
        yield memory


def _refuse_an_empty_start(common: Common, paths: Sequence[str]) -> None:
    """Raises E010 or E014 when there is no store yet and none of the paths can be indexed.

    An empty store would be worse than none: its folder would count as a workspace from then on.
    """
    config = settings(common.db)
    if store_is_there(config.db):
        return
    from speckit_memory.memory.scanning.missing_paths import missing_path

    problems = []
    for given, path in zip(paths, named_paths(paths), strict=True):
        if not path.is_relative_to(config.root):
            message = f"'{given}' is outside the workspace {config.root}"
            actions = ("start the command in the folder that holds it", "set SPECKIT_ROOT to that folder")
            problems.append(Problem("E014", message, "Keys are paths relative to the workspace root.", actions))
        elif not is_there(path):
            problems.append(missing_path(path.relative_to(config.root).as_posix(), config.root))
    if len(problems) == len(paths):
        raise SpeckitError.of(problems)


def index_once(common: Common, memory: Memory, paths: Sequence[str], force: bool, dry_run: bool) -> int:
    """Runs and reports one indexing. Files that cannot be indexed make it fail; the others are indexed all the same.

    Args:
        common: The common options.
        memory: The store.
        paths: Files and folders as given.
        force: Reads unchanged files again.
        dry_run: Writes nothing.

    Returns:
        The exit status.
    """
    from speckit_memory.memory.indexing.reader_processes import helpful_processes

    started, written = monotonic(), 0

    def note(now: IndexProgress) -> None:
        nonlocal written
        if not now.phase:
            written = now.done
        bar.update(now.done, now.total or 0, now.phase)

    try:
        with ProgressReporter("indexing") as bar:
            report = memory.index(paths, force=force, dry_run=dry_run, progress=note, processes=helpful_processes())
    except KeyboardInterrupt:
        if written and not dry_run:
            kept = f"{plural(written, 'document')} had been written and stay; index again for the rest"
            click.echo(wrap_text(kept, stream=sys.stderr), err=True)
        raise
    return _print_report(common, memory, report, monotonic() - started)


def _print_report(common: Common, memory: Memory, report: IndexReport, seconds: float) -> int:
    """Prints a report; returns the exit status."""
    error = SpeckitError.of(report.failures) if report.failures else None
    store = settings(common.db).store_told
    if common.as_json:
        where = {"store": store, "workspace": str(memory.session.settings.root)}
        print_json(as_json(report, seconds) | where | (error.as_json() if error else {}))
    else:
        show(report, seconds)
        click.echo(wrap_text(f"store {store}, workspace {memory.session.settings.root}", dim=True))
    return error.exit_status if error else 0


def as_json(report: IndexReport, seconds: float) -> dict[str, Any]:
    """The report as plain data: keys by outcome, and the number of unchanged documents."""
    return {
        **{outcome: getattr(report, outcome) for outcome in OUTCOMES},
        "renamed": [move.as_json() for move in report.renamed],
        "absent": report.absent,
        "vanished": report.vanished,
        "returned": report.returned,
        "unchanged": len(report.unchanged),
        "problems": [problem.as_json() for problem in report.problems],
        "aliases": [list(keys) for keys in report.aliases],
        "known_aliases": report.known_aliases,
        "ignored": _reasons(report.ignored),
        "overruled": _reasons(report.overruled),
        "sources": [key or "." for key in report.sources],
        **{name: getattr(report, name) for name in COUNTS},
        "redacted": report.redacted,
        "verdicts": {key: verdict.as_json() for key, verdict in report.verdicts.items()},
        "seconds": round(seconds, 3),
        "dry_run": report.dry_run,
    }


def show(report: IndexReport, seconds: float) -> None:
    """Prints the report for a reader."""
    from speckit_memory.server.views.absent_files_text import absence_lines

    counts = ", ".join(f"{len(getattr(report, outcome)):,} {outcome}" for outcome in OUTCOMES)
    if not any(getattr(report, outcome) for outcome in CHANGES):
        there = plural(len(report.unchanged), "document")
        counts = f"nothing has changed: {there} as before" if report.unchanged else "nothing has changed: no documents"
    click.echo(wrap_text(f"dry run, nothing written: {counts}" if report.dry_run else counts))
    figures = (
        f"{plural(report.chunks, 'passage')}, {plural(report.characters, 'character')}, "
        f"{plural(report.links, 'link')} in {seconds:.1f} s; "
        f"{report.embedded:,} embedded, {report.cache_hits:,} taken from the cache"
        + (f", {report.pending:,} without a vector yet" if report.pending else "")
    )
    if any(getattr(report, name) for name in COUNTS):
        click.echo(wrap_text(figures))
    for line in absence_lines(report):
        click.echo(wrap_text(line, "  ", ""))
    for move in report.renamed[:SHOWN_PROBLEMS]:
        edited = "" if move.similarity == 1 else f" (edited, {move.similarity:.0%} alike)"
        click.echo(wrap_text(f"renamed: {abridge(move.old)} -> {abridge(move.new)}{edited}", "  ", ""))
    if len(report.renamed) > SHOWN_PROBLEMS:
        click.echo(wrap_text(f"… and {len(report.renamed) - SHOWN_PROBLEMS} more; see them all with --json"))
    for keys in report.aliases[:SHOWN_PROBLEMS]:
        click.echo(wrap_text(f"same content: {', '.join(keys)}", "  ", ""))
    if len(report.aliases) > SHOWN_PROBLEMS:
        click.echo(wrap_text(f"… and {len(report.aliases) - SHOWN_PROBLEMS} more; see them all with --force --json"))
    if report.known_aliases:
        groups = plural(report.known_aliases, "group")
        click.echo(wrap_text(f"same content as on earlier runs: {groups} of files; --force names them again"))
    if report.ignored:
        click.echo(wrap_text(f"ignored: {_by_reason(report.ignored)}; --json lists them"))
    for key, reason in report.overruled.items():
        click.echo(wrap_text(f"indexed because it was named: {abridge(key)} ({reason})", "  ", ""))
    show_saving(report)
    for title, label, problems in (("remarks", "warning", report.problems), ("not indexed", "error", report.failures)):
        if problems:
            click.echo(f"{title}: {len(problems)}", err=True)
            show_problems(problems, sys.stderr, label, "more; see them all with --json")


def show_saving(report: IndexReport) -> None:
    """Prints redactions and repairs of stored texts, and the relation of new documents to existing ones."""
    from speckit_memory.server.views.save_verdict import describe_verdict

    if report.redacted:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report.redacted.items()))
        click.echo(wrap_text(f"secrets left out of the store: {kinds}"))
    if report.recalled:
        click.echo(wrap_text(f"recalled text left out: {plural(report.recalled, 'block')}"))
    if report.mended:
        click.echo(wrap_text(f"repaired in the store, not in their files: {plural(report.mended, 'document')}"))
    for key, verdict in report.verdicts.items():
        click.echo(wrap_text(f"{abridge(key)}: {abridge(describe_verdict(verdict))}", "  ", ""))


def _reasons(left_out: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "reason": reason} for key, reason in sorted(left_out.items())]


def _by_reason(ignored: dict[str, str]) -> str:
    """The number of files and folders left out, with the reasons: "2 files, 1 folder (2 by .gitignore, 1 hidden)"."""
    from speckit_memory.memory.indexing.restored_files import REMOVED
    from speckit_memory.memory.parsing.generated import GENERATED
    from speckit_memory.memory.scanning.lfs_pointer import POINTER
    from speckit_memory.memory.scanning.selection import FORMAT, HIDDEN, WORKTREE

    states = (FORMAT, HIDDEN, WORKTREE, GENERATED, POINTER, REMOVED)  # other reasons name a file of patterns
    folders = sum(key.endswith("/") for key in ignored)
    kinds = Counter(reason.partition(":")[0] for reason in ignored.values())
    counts = ((len(ignored) - folders, "file"), (folders, "folder"))
    causes = [f"{count} {kind}" if kind in states else f"{count} by {kind}" for kind, count in sorted(kinds.items())]
    return f"{', '.join(plural(count, noun) for count, noun in counts if count)} ({', '.join(causes)})"
