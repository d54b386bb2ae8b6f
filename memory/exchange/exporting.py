"""Exports the memories of a store to a folder, or updates an earlier export (feature M14).

The manifest is written last and marked as unfinished until then: an interrupted export is invalid, and the next one
completes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from speckit_memory.config.files.file_lock import locked
from speckit_memory.config.workspace.options import SavingRules
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import list_names
from speckit_memory.memory.editing import placed_file
from speckit_memory.memory.exchange import layout, manifest, texts
from speckit_memory.memory.exchange.manifest import ExportManifest, ManifestEntry, digest
from speckit_memory.memory.exchange.texts import ExportedText
from speckit_memory.memory.scanning import inside
from speckit_memory.memory.scanning.scanner import LARGEST_FILE, below
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.missing import EmptyFolderError
from speckit_memory.memory.store.tables.memories import source_paths
from speckit_memory.memory.store.tables.memories.absences import PRESENT
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.transfer import records

NAMED = 5
LARGEST_RECORD = 64 << 20
"""Maximum size in bytes of the learned data of one memory, and of the data that belongs to none."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The result of an export: the number of memories, of files written, and of files of deleted memories removed from
    an earlier export. `without_file` are keys of memories whose text was generated from the store; `secrets` counts
    secrets left out of texts."""

    path: Path
    memories: int
    written: int
    removed: int
    without_file: tuple[str, ...]
    secrets: int


def export(database: Database, root: Path, rules: SavingRules, target: Path, folder: str = "") -> ExportReport:
    """Export the memories of a folder and its subfolders.

    Args:
        database: The store.
        root: Folder of the workspace.
        rules: Rules for secrets in texts.
        target: Created if missing; otherwise it must be empty or an earlier export without edits.
        folder: Folder to export; "" for the whole store.

    Raises:
        SpeckitError: E064 if the target cannot be written, E080 for a folder without memories.
    """
    try:
        before = _earlier(target, folder)
        target.mkdir(parents=True, exist_ok=True)
        with locked(target / layout.MANIFEST), database.snapshot_read() as connection:
            return _Export(connection, root, rules, target, folder, before).run(database.path)
    except (OSError, TimeoutError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise SpeckitError("E064", f"{target} could not be written: {why}") from error


class _Export:
    def __init__(
        self,
        connection: Connection,
        root: Path,
        rules: SavingRules,
        target: Path,
        folder: str,
        before: ExportManifest | None,
    ) -> None:
        self._connection = connection
        self._root = root
        self._rules = rules
        self._target = target
        self._folder = folder
        self._before = before
        self._written = 0

    def run(self, store: Path) -> ExportReport:
        found = rows(
            self._connection, f"SELECT key, folder, mtime_ns, content_hash FROM memories WHERE {PRESENT} ORDER BY id"
        )
        chosen = [(key, mtime, stored) for key, lies, mtime, stored in found if below(lies, self._folder)]
        if self._folder and not chosen:
            raise EmptyFolderError(self._folder)
        get = {key: self._getter(key, mtime) for key, mtime, _ in chosen}
        paths = layout.places((key, text().is_file) for key, text in get.items())
        self._require_unedited(paths, get)
        # From here on an interruption leaves a manifest that says so.
        mark = ExportManifest(self._folder, "", "", self._before.memories if self._before else (), finished=False)
        self._put(layout.MANIFEST, mark.text().encode())
        self._put(layout.IGNORE, b"*\n")
        digests: dict[str, str] = {}
        written: dict[str, ExportedText] = {}
        without_file, redacted = [], 0
        hashes: dict[str, str] = {}
        for key, mtime, stored in chosen:
            text = get[key]()
            hashes[key] = digest(text.data)
            # Keep the metadata, not the contents, of all texts.
            written[key] = replace(text, data=b"")
            # The exported text differs from the stored one: its record must refer to the exported hash.
            if text.secrets or not text.found:
                digests[stored] = text.content_hash(key)
            if not text.found and mtime is not None:
                without_file.append(key)
            redacted += text.secrets
            self._put(f"{layout.TEXTS}/{paths[key]}", text.data)
        known = records.read(
            self._connection,
            inside=lambda lies: below(lies, self._folder),
            digests=digests,
            root=source_paths.root_name(self._root, store),
        )
        entries = []
        for key, record in known.memories.items():
            shown = json_text({"key": key, "memory": record.memory, **record.rows})
            self._put(layout.record_of(paths[key]), shown)
            entries.append(ManifestEntry(key, paths[key], written[key].is_file, hashes[key], digest(shown)))
        loose = json_text(known.loose)
        self._put(layout.STORE, loose)
        made = ExportManifest(
            self._folder, get_meta(self._connection, vectors.MODEL) or "", digest(loose), tuple(entries)
        )
        removed = self._remove_gone(set(paths.values()))
        self._put(layout.MANIFEST, made.text().encode(), sync=True)
        placed_file.clear_partial(self._target)
        return ExportReport(self._target, len(entries), self._written, removed, tuple(without_file), redacted)

    def _getter(self, key: str, mtime: int | None) -> Callable[[], ExportedText]:
        """A function that reads the text, so that not all texts are in memory at once."""

        def get() -> ExportedText:
            found = texts.of_file(self._root, key, self._rules) if mtime is not None else None
            return found or texts.of_store(self._connection, key)

        return get

    def _put(self, path: str, data: bytes, sync: bool = False) -> None:
        # Unchanged files keep their modification times.
        if self._there(path) != data:
            placed_file.put_file(self._target, path, data, over=True, sync=sync)
            self._written += path != layout.MANIFEST

    def _there(self, path: str) -> bytes | None:
        with suppress(OSError):
            return inside.read(self._target, path, max(LARGEST_FILE, LARGEST_RECORD, manifest.LARGEST)).data
        return None

    def _require_unedited(self, paths: dict[str, str], get: dict[str, Callable[[], ExportedText]]) -> None:
        """Raise E064 if the export would overwrite edits that have not been imported."""
        if self._before is not None and not self._before.finished:
            return  # differences come from the interrupted export
        known = {each.path: each for each in self._before.memories} if self._before else {}
        keys = {path: key for key, path in paths.items()}
        edited = []
        for path in {**known, **keys}:
            there = self._there(f"{layout.TEXTS}/{path}")
            if there is None or (path in known and digest(there) == known[path].text):
                continue
            if path not in keys or get[keys[path]]().data != there:
                edited.append(path)
        if edited:
            raise SpeckitError(
                "E064",
                f"{self._target} has {len(edited)} texts that were edited or added since the export: "
                f"{list_names(sorted(edited), NAMED)}; nothing was written",
                actions=(f"import them first: speckit-memory import {self._target}", "export to another folder"),
            )

    def _remove_gone(self, kept: Iterable[str]) -> int:
        """Remove the files of deleted memories from an earlier export, and folders that become empty."""
        gone = {each.path for each in self._before.memories} - set(kept) if self._before else set()
        for path in gone:
            for each in (f"{layout.TEXTS}/{path}", layout.record_of(path)):
                file = self._target / each
                with suppress(FileNotFoundError):
                    file.unlink()
                for parent in file.relative_to(self._target).parents:
                    with suppress(OSError):
                        (self._target / parent).rmdir()
        return len(gone)


def json_text(told: object) -> bytes:
    """The JSON form of records: equal values give equal bytes, one line per value."""
    return f"{json.dumps(told, ensure_ascii=False, indent=1, allow_nan=False)}\n".encode()


def _earlier(target: Path, folder: str) -> ExportManifest | None:
    """The manifest of an earlier export in this folder. Raises E064 if the folder must not be written to."""
    if target.is_symlink() or (os.path.lexists(target) and not target.is_dir()):
        raise SpeckitError("E064", f"{target} is not a folder", actions=("name a folder",))
    if not target.is_dir():
        return None
    try:
        found = manifest.read(target)
    except SpeckitError as error:
        raise SpeckitError("E064", f"{error.problems[0].message}; nothing was written") from error
    if found is None and any(name.name != f"{layout.MANIFEST}.lock" for name in target.iterdir()):
        raise SpeckitError("E064", f"{target} is not empty and is not an export; nothing was written")
    if found is not None and found.folder != folder:
        message = f"{target} is an export of {found.folder or 'the whole store'}, not of {folder or 'the whole store'}"
        raise SpeckitError("E064", f"{message}; nothing was written")
    return found
