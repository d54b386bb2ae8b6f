"""The manifest of an export, with a digest of each file: written last, so that an export without one is incomplete."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.exchange import layout
from speckit_memory.memory.scanning import inside

FORMAT = 1
"""Version of the file format of exports, incremented when older versions could not read it."""
LARGEST = 512 << 20
"""Maximum size of a manifest in bytes: about two million memories."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One memory. `path`: of its text below `layout.TEXTS`; `is_file`: whether the text is a file of the workspace at
    the key; `text` and `learned`: digests of both files as written."""

    key: str
    path: str
    is_file: bool
    text: str
    learned: str


@dataclass(frozen=True, slots=True)
class ExportManifest:
    """An export. `folder` is "" for the whole store, `model` names the model of its vectors, which are not exported;
    `finished` is False while it is being written."""

    folder: str
    model: str
    store: str
    memories: tuple[ManifestEntry, ...]
    finished: bool = True

    def text(self) -> str:
        """The JSON form: equal exports give equal text."""
        head: dict[str, Any] = {"speckit_export": FORMAT, "finished": self.finished, "count": len(self.memories)}
        head |= {"folder": self.folder, "model": self.model, "store": self.store}
        # One line per memory, so that version control shows useful diffs.
        lines = ",\n".join(json.dumps(asdict(each), ensure_ascii=False) for each in self.memories)
        return f'{json.dumps(head, ensure_ascii=False)[:-1]}, "memories": [\n{lines}\n]}}\n'


def digest(data: bytes) -> str:
    """Hexadecimal SHA-256."""
    return sha256(data).hexdigest()


def read(folder: Path) -> ExportManifest | None:
    """The manifest of an export, None if there is none. Raises E065 for a damaged one, E025 for a newer format."""
    try:
        data = inside.read(folder, layout.MANIFEST, LARGEST).data
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _torn(folder, inside.reason(error)) from error
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _torn(folder, f"it is not JSON: {error}") from error
    if not isinstance(told, dict) or not _is_count(told.get("speckit_export")):
        raise _torn(folder, "it is not the manifest of an export")
    if told["speckit_export"] > FORMAT:
        message = f"{folder} is an export of format {told['speckit_export']}; this version reads up to {FORMAT}"
        raise SpeckitError("E025", message, actions=("upgrade speckit-memory", "export again with this version"))
    return _parsed(folder, told)


def _parsed(folder: Path, told: Mapping[str, Any]) -> ExportManifest:
    of, model, store = (told.get(name) for name in ("folder", "model", "store"))
    listed = told.get("memories")
    if not (isinstance(of, str) and isinstance(model, str) and isinstance(store, str) and isinstance(listed, list)):
        raise _torn(folder, "its entries have other types than those of an export")
    if told.get("count") != len(listed) or not isinstance(told.get("finished"), bool):
        raise _torn(folder, f"it announces {told.get('count')} memories and lists {len(listed)}")
    entries = [_entry(folder, each) for each in listed]
    for what in ("key", "path"):
        # Two entries with the same path would overwrite each other.
        met: set[str] = set()
        for each in entries:
            name = getattr(each, what)
            if name in met:
                raise _torn(folder, f"it lists '{name[:200]}' twice")
            met.add(name)
    return ExportManifest(of, model, store, tuple(entries), told["finished"])


def _entry(folder: Path, told: object) -> ManifestEntry:
    kinds = {"key": str, "path": str, "is_file": bool, "text": str, "learned": str}
    if not isinstance(told, dict) or set(told) != set(kinds):
        raise _torn(folder, "one of its memories has other keys than those of an export")
    if wrong := [name for name, kind in kinds.items() if not isinstance(told[name], kind)]:
        raise _torn(folder, f"the '{wrong[0]}' of one of its memories has the wrong type")
    if not told["key"] or not layout.usable(told["path"]):
        raise _torn(folder, f"'{told['path'][:200]}' is not a valid path in an export")
    if not (_DIGEST.fullmatch(told["text"]) and _DIGEST.fullmatch(told["learned"])):
        raise _torn(folder, f"'{told['path'][:200]}' has no digests")
    return ManifestEntry(**told)


def _is_count(told: object) -> bool:
    return isinstance(told, int) and not isinstance(told, bool) and told >= 1


def _torn(folder: Path, why: str) -> SpeckitError:
    return SpeckitError("E065", f"{folder / layout.MANIFEST} cannot be used: {why}")
