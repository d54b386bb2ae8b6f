"""Reads the source of an import: the memories of an export, or other documents."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from speckit_memory.config.workspace.formats import DOCUMENT_SUFFIXES
from speckit_memory.config.workspace.options import SourcePatterns
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.names import displayable_name
from speckit_memory.memory.exchange import layout, manifest
from speckit_memory.memory.exchange.exporting import LARGEST_RECORD
from speckit_memory.memory.exchange.manifest import ManifestEntry, digest
from speckit_memory.memory.intake import secrets
from speckit_memory.memory.parsing.encoding import decode
from speckit_memory.memory.scanning import inside
from speckit_memory.memory.scanning.scanner import FORBIDDEN_FOLDERS, LARGEST_FILE
from speckit_memory.memory.scanning.selection import refusal
from speckit_memory.memory.store.transfer.records import MemoryRows
from speckit_memory.memory.store.transfer.table_map import PORTABLE

_NO_PATTERNS = SourcePatterns()


@dataclass(frozen=True, slots=True)
class Offer:
    """One offered memory. `text` is the digest of its present text, `base` that of the exported text, "" for documents
    that were not exported. `problem` tells why it cannot be imported; other fields are unset then."""

    key: str
    place: str = ""
    is_file: bool = True
    text: str = ""
    base: str = ""
    record: MemoryRows | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ImportSource:
    """The source of an import. `loose` are rows that belong to no memory, `into` the folder of the workspace for
    documents that were not exported."""

    top: Path
    offers: tuple[Offer, ...]
    loose: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    into: str = ""
    exported: bool = False

    def data(self, offer: Offer) -> bytes:
        """The text of an offer. Raises E065 if it was changed meanwhile."""
        try:
            data = inside.read(self.top, offer.place, LARGEST_FILE).data
        except OSError as error:
            raise SpeckitError("E065", f"{self.top / offer.place}: {inside.reason(error)}") from error
        # The decision was made for the text read earlier.
        if digest(data) != offer.text:
            raise SpeckitError("E065", f"{self.top / offer.place} changed while it was read")
        return data


def open_offers(source: Path, into: str | None) -> ImportSource:
    """The offers of a folder or file. Documents that are not an export go to the workspace folder `into`; None for a
    folder named after the source. Raises E010, E025 and E065."""
    if not os.path.lexists(source):
        raise SpeckitError("E010", f"{source}: there is no such file or folder")
    if source.is_file():
        name = source.name
        if PurePosixPath(name).suffix.lower() not in DOCUMENT_SUFFIXES:
            raise SpeckitError("E065", f"{source} is not a document; accepted: {', '.join(sorted(DOCUMENT_SUFFIXES))}")
        target = "memories" if into is None else into
        return ImportSource(source.parent, (_document(source.parent, name, _joined(target, name)),), into=target)
    found = manifest.read(source)
    if found is None:
        if (source / layout.TEXTS).is_dir() and (source / layout.LEARNED).is_dir():
            raise SpeckitError("E065", f"{source} looks like an export, but its {layout.MANIFEST} is missing")
        target = source.name if into is None else into
        offers = tuple(_document(source, path, _joined(target, path)) for path in _documents(source, ""))
        if not offers:
            raise SpeckitError(
                "E065", f"{source} contains no documents; accepted: {', '.join(sorted(DOCUMENT_SUFFIXES))}"
            )
        return ImportSource(source, offers, into=target)
    if into is not None:
        message = f"{source} is an export, whose memories keep their paths"
        raise SpeckitError("E065", message, actions=("leave --into out",))
    if not found.finished:
        raise SpeckitError("E065", f"{source} is an export that was interrupted before it was complete")
    # Files that people added to an export are imported as new documents.
    known = {each.path for each in found.memories}
    added = [path for path in _documents(source, layout.TEXTS) if path.removeprefix(f"{layout.TEXTS}/") not in known]
    offers = (
        *(_exported(source, each) for each in found.memories),
        *(_document(source, path, path.removeprefix(f"{layout.TEXTS}/")) for path in added),
    )
    return ImportSource(source, offers, _loose(source, found.store), exported=True)


def refused_key(key: str) -> str:
    """Why no file of a workspace may have this key; "" if it may."""
    parts = tuple(key.split("/"))
    if (
        displayable_name(key) != key
        or "\0" in key
        or key.startswith("/")
        or any(part in ("", ".", "..") for part in parts)
    ):
        return "its key is not a path inside a workspace"
    if FORBIDDEN_FOLDERS & set(parts):
        return "its key is in a folder where programs keep their files"
    if kind := secrets.secret_kind_of_name(key):
        return f"its key contains a secret ({kind})"
    if PurePosixPath(key).suffix.lower() not in DOCUMENT_SUFFIXES:
        return "its key is not that of a document"
    reason = refusal(parts, False, _NO_PATTERNS)
    return f"its key is {reason}" if reason.startswith("in '") else ""


def _document(top: Path, path: str, key: str) -> Offer:
    """The offer of a document that is not part of an export."""
    if problem := refused_key(key):
        return Offer(key, path, problem=problem)
    try:
        data = inside.read(top, path, LARGEST_FILE).data
        if not decode(data, key).strip():
            return Offer(key, path, problem="it is empty")
    except OSError as error:
        return Offer(key, path, problem=inside.reason(error))
    except SpeckitError as error:
        return Offer(key, path, problem=error.problems[0].message)
    return Offer(key, path, True, digest(data))


def _exported(top: Path, entry: ManifestEntry) -> Offer:
    place = f"{layout.TEXTS}/{entry.path}"
    if problem := refused_key(entry.key) if entry.is_file else _refused_name(entry.key):
        return Offer(entry.key, place, problem=problem)
    try:
        data = inside.read(top, place, LARGEST_FILE).data
        if not decode(data, place).strip():
            return Offer(entry.key, place, problem=f"{place} is empty")
        record = _record(top, entry)
    except FileNotFoundError:
        return Offer(entry.key, place, problem=f"{place} or its record is missing")
    except OSError as error:
        return Offer(entry.key, place, problem=f"{place} or its record: {inside.reason(error)}")
    except SpeckitError as error:
        return Offer(entry.key, place, problem=error.problems[0].message)
    return Offer(entry.key, place, entry.is_file, digest(data), entry.text, record)


def _refused_name(key: str) -> str:
    if displayable_name(key) != key or "\0" in key or secrets.secret_kind_of_name(key):
        return "its key is not a valid key of a memory"
    return ""


def _record(top: Path, entry: ManifestEntry) -> MemoryRows:
    place = layout.record_of(entry.path)
    data = inside.read(top, place, LARGEST_RECORD).data
    if digest(data) != entry.learned:
        raise SpeckitError("E065", f"{place} was changed after the export (the digest differs)")
    told = _json(data, place)
    if told.pop("key", None) != entry.key or not isinstance(memory := told.pop("memory", None), dict):
        raise SpeckitError("E065", f"{place} is not the record of '{entry.key}'")
    return MemoryRows(memory, _rows(told, place))


def _loose(top: Path, wanted: str) -> dict[str, list[dict[str, Any]]]:
    try:
        data = inside.read(top, layout.STORE, LARGEST_RECORD).data
    except OSError as error:
        raise SpeckitError("E065", f"{top / layout.STORE}: {inside.reason(error)}") from error
    if digest(data) != wanted:
        raise SpeckitError("E065", f"{top / layout.STORE} was changed after the export (the digest differs)")
    return _rows(_json(data, layout.STORE), layout.STORE)


def _rows(told: Mapping[str, Any], place: str) -> dict[str, list[dict[str, Any]]]:
    names = {table.name for table in PORTABLE}
    for name, listed in told.items():
        if name not in names:
            raise SpeckitError("E065", f"{place} has '{name}', which this version does not know")
        if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
            raise SpeckitError("E065", f"'{name}' in {place} is not a list of rows")
    return dict(told)


def _json(data: bytes, place: str) -> dict[str, Any]:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SpeckitError("E065", f"{place} is not JSON: {error}") from error
    if not isinstance(told, dict):
        raise SpeckitError("E065", f"{place} is not a JSON object")
    return told


def _documents(top: Path, below: str) -> Iterator[str]:
    """Relative paths of the documents below a folder, in order; hidden files and links are skipped."""
    for folder, folders, names in os.walk(top / below):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if PurePosixPath(name).suffix.lower() in DOCUMENT_SUFFIXES and name[0] != "." and not path.is_symlink():
                yield path.relative_to(top).as_posix()


def _joined(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path
