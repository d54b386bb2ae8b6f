"""Forgets sources and deletes the memories that no other source holds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from speckit_memory.config.workspace.options import SourcePatterns
from speckit_memory.config.workspace.settings import CONFIG_FILE
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.memory.intake.index_report import IndexReport
from speckit_memory.memory.lifecycle import interference
from speckit_memory.memory.scanning.scanner import below, scan
from speckit_memory.memory.scanning.workspace_sources import WorkspaceSources
from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.reading.reader import KnownFile
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.links import resolve_links


def forget(
    database: Database,
    sources: WorkspaceSources,
    root: Path,
    patterns: SourcePatterns,
    paths: Sequence[Path],
    *,
    dry_run: bool,
    now: float,
) -> IndexReport:
    """Forget the sources at and below the paths, with every memory that no other source holds.

    Args:
        database: The store.
        sources: The sources of the workspace.
        root: The root of the workspace.
        patterns: The include and exclude patterns in force.
        paths: Files and folders, relative to the root or absolute; they need not exist any more.
        dry_run: Report what would be deleted and write nothing.
        now: The time, in epoch seconds.

    Raises:
        SpeckitError: E014 for every path from which nothing was indexed; nothing is forgotten then.
    """
    connection = database.reader()
    known, stored = sources.known(connection), reader.known_files(connection)
    keys = [_key(path, root) for path in paths]
    problems = [
        _unknown(path, known)
        for path, key in zip(paths, keys, strict=True)
        if key is None or not any(below(name, key) for name in (*known, *(k for k in stored if _is_file(stored[k]))))
    ]
    if problems:
        raise SpeckitError.of(problems)
    wanted = [key for key in keys if key is not None]
    taken = [name for name in known if any(below(name, key) for key in wanted)]
    left = [name for name in known if name not in taken]
    found = scan([Path(name) for name in left], root, patterns)
    elsewhere = sources.elsewhere(connection)
    concerned = [key for key, file in stored.items() if _is_file(file) and any(below(key, name) for name in wanted)]
    # A memory stays if a remaining source has its file, could not be read, or belongs to another root.
    held = [
        key
        for key in concerned
        if key in found.files or any(below(key, name) for name in found.hidden) or elsewhere(key)
    ]
    gone = [key for key in concerned if key not in held]
    report = IndexReport(dry_run=dry_run, unchanged=held, sources=left)
    if held:
        one = len(held) == 1
        who = f"1 memory stays, {held[0]}" if one else f"{len(held)} memories stay, such as {held[0]}"
        message = f"{who}: another source holds {'it' if one else 'them'}"
        actions = (f"leave them out with sources.exclude in {CONFIG_FILE}", "forget that source too")
        report.problems.append(Problem("E014", message, "A source holds all files below it.", actions))
    if dry_run:
        report.deleted += gone
        return report
    # One transaction: a crash cannot leave a forgotten source with memories nothing would ever delete.
    with database.write() as txn:
        sources.forget(txn, taken)
        report.deleted += still_stored(txn, gone, stored)
        writer.delete_memories(txn, [stored[key].id for key in report.deleted])
        report.links = resolve_links(txn, now)
    interference.recount(database)
    return report


def still_stored(txn: Transaction, keys: Sequence[str], known: Mapping[str, KnownFile]) -> list[str]:
    """Return the keys whose memory is unchanged: another process may have deleted or rewritten it since."""
    stored = reader.known_files(txn.connection) if keys else {}
    return [key for key in keys if key in stored and stored[key][:3] == known[key][:3]]  # vectors not compared


def _is_file(stored: KnownFile) -> bool:
    return stored.mtime_ns is not None


def _key(path: Path, root: Path) -> str | None:
    absolute = Path(os.path.normpath(root / path))
    if not absolute.is_relative_to(root):
        return None
    key = absolute.relative_to(root).as_posix()
    return "" if key == "." else key


def _unknown(path: Path, known: Mapping[str, bool]) -> Problem:
    names = ", ".join(name or "." for name in known) or "none"
    return Problem("E014", f"nothing was indexed from '{path}'", f"The sources are: {names}.")
