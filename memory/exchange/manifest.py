"""What an export holds, with a digest of each file: written last, so that what has none is not complete."""

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
"""Of the files of an export. A version that writes what older ones cannot read counts it up."""
LARGEST = 512 << 20
"""Bytes of a manifest: of some two million memories."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory. `path` is that of its text below `layout.TEXTS`; `is_file` says whether the text is a file of the
    workspace, by the name of the key. `text` and `learned` are the digests of both files, as they were written."""

    key: str
    path: str
    is_file: bool
    text: str
    learned: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """An export. `folder` is "" for one of the whole store, `model` names what made its vectors, which are not in it;
    `finished` is False while it is written."""

    folder: str
    model: str
    store: str
    memories: tuple[Entry, ...]
    finished: bool = True

    def text(self) -> str:
        """As it is written: equal for equal exports."""
        head: dict[str, Any] = {"speckit_export": FORMAT, "finished": self.finished, "count": len(self.memories)}
        head |= {"folder": self.folder, "model": self.model, "store": self.store}
        lines = ",\n".join(json.dumps(asdict(each), ensure_ascii=False) for each in self.memories)
        return f'{json.dumps(head, ensure_ascii=False)[:-1]}, "memories": [\n{lines}\n]}}\n'


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return sha256(data).hexdigest()


def read(folder: Path) -> Manifest | None:
    """The manifest of an export, None where there is none. Raises E065 for one that is torn, E025 for a newer one."""
    try:
        data = inside.read(folder, layout.MANIFEST, LARGEST).data
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _torn(folder, (error.strerror or str(error)).lower()) from error
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _torn(folder, f"it is no JSON: {error}") from error
    if not isinstance(told, dict) or not _is_count(told.get("speckit_export")):
        raise _torn(folder, "it is not the manifest of an export")
    if told["speckit_export"] > FORMAT:
        message = f"{folder} is an export of format {told['speckit_export']}; this version reads up to {FORMAT}"
        raise SpeckitError("E025", message, actions=("upgrade speckit-memory", "export again with this version"))
    return _parsed(folder, told)


def _parsed(folder: Path, told: Mapping[str, Any]) -> Manifest:
    of, model, store = (told.get(name) for name in ("folder", "model", "store"))
    listed = told.get("memories")
    if not (isinstance(of, str) and isinstance(model, str) and isinstance(store, str) and isinstance(listed, list)):
        raise _torn(folder, "its entries are not of the kind that exports have")
    if told.get("count") != len(listed) or not isinstance(told.get("finished"), bool):
        raise _torn(folder, f"it tells of {told.get('count')} memories and names {len(listed)}")
    entries = [_entry(folder, each) for each in listed]
    for what in ("key", "path"):
        met: set[str] = set()
        for each in entries:
            name = getattr(each, what)
            if name in met:
                raise _torn(folder, f"it names '{name[:200]}' twice")
            met.add(name)
    return Manifest(of, model, store, tuple(entries), told["finished"])


def _entry(folder: Path, told: object) -> Entry:
    kinds = {"key": str, "path": str, "is_file": bool, "text": str, "learned": str}
    if not isinstance(told, dict) or set(told) != set(kinds):
        raise _torn(folder, "one of its memories has other entries than exports have")
    if wrong := [name for name, kind in kinds.items() if not isinstance(told[name], kind)]:
        raise _torn(folder, f"the '{wrong[0]}' of one of its memories is of another kind")
    if not told["key"] or not layout.usable(told["path"]):
        raise _torn(folder, f"'{told['path'][:200]}' is no path of an export")
    if not (_DIGEST.fullmatch(told["text"]) and _DIGEST.fullmatch(told["learned"])):
        raise _torn(folder, f"'{told['path'][:200]}' has no digests")
    return Entry(**told)


def _is_count(told: object) -> bool:
    return isinstance(told, int) and not isinstance(told, bool) and told >= 1


def _torn(folder: Path, why: str) -> SpeckitError:
    return SpeckitError("E065", f"{folder / layout.MANIFEST} cannot be used: {why}")
