"""The folder of a store's checkpoints: listing them, adding and removing them atomically (feature M14).

The folder is `<store file>.checkpoints`. Each checkpoint has a database file, itself a store, and a description
`<name>.json` that is written last. Files without a description are no checkpoint; those left by a killed process are
removed by the next writer.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.store.file.guarding.store_file import FOR_THE_OWNER

if sys.platform != "win32":
    import fcntl

ENDING = ".checkpoints"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
LONGEST_METADATA = 10_000
"""Maximum number of characters of the metadata as JSON."""
FAULTS = 20
"""Maximum number of signs of damage recorded with a checkpoint."""
_LEAF, _FILE, _PARTIAL = ".json", ".db", ".partial"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A saved state of a store. `created_at` is in epoch seconds; `rows` are counts by table; `folder` is "" for the
    whole store; `schema` is the last migration of the file; `faults` are signs of damage that the store had then.

    `problem` says why it cannot be restored, as far as that is visible without reading the whole file.
    """

    name: str
    created_at: float
    folder: str
    metadata: dict[str, Any]
    store_id: str
    schema: str
    file: str
    bytes: int
    sha256: str
    rows: dict[str, int]
    faults: tuple[str, ...] = ()
    problem: str = ""

    @property
    def memories(self) -> int:
        """Number of memories in it."""
        return self.rows.get("memories", 0)


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "created_at": (int, float),
    "folder": str,
    "metadata": dict,
    "store_id": str,
    "schema": str,
    "file": str,
    "bytes": int,
    "sha256": str,
    "rows": dict,
    "faults": list,
}


@dataclass(frozen=True, slots=True)
class Folder:
    """The checkpoints of one store."""

    store: Path
    ending: str = ENDING
    """Suffix of the folder's name after the name of the store."""
    path: Path = field(init=False)

    def __post_init__(self) -> None:
        """Sets the path: next to the file itself, where the store's path is a link."""
        object.__setattr__(self, "path", Path(os.path.realpath(self.store) + self.ending))

    def all(self) -> list[Checkpoint]:
        """All checkpoints, latest first; a damaged one has a `problem`."""
        with suppress(FileNotFoundError, NotADirectoryError):
            found = [self._read(leaf) for leaf in self.path.iterdir() if leaf.suffix == _LEAF]
            return sorted(found, key=lambda one: (-one.created_at, one.name))
        return []

    def get(self, name: str) -> Checkpoint:
        """The checkpoint with this name. Raises E060."""
        for one in (there := self.all()):
            if one.name == name:
                return one
        names = [one.name for one in there]
        offered = f"; {nearest(name, names)}" if names else f"; {self.store} has none"
        raise SpeckitError("E060", f"there is no checkpoint '{name}'{offered}")

    def file_of(self, checkpoint: Checkpoint) -> Path:
        """The file with its rows."""
        return self.path / checkpoint.file

    def aside(self, name: str) -> Path:
        """The folder of files saved with this checkpoint or deletion. It is hidden, so that no index run enters it."""
        return self.path / f".{name}.files"

    def require_new(self, name: str) -> None:
        """Raises E030 for an invalid name and E063 for one that is taken, ignoring case."""
        if not NAME.fullmatch(name):
            hint = "A name has 1 to 100 letters, digits, '.', '_' and '-', and begins with a letter or digit."
            raise SpeckitError("E030", f"'{name[:100]}' cannot be the name of a checkpoint", hint=hint)
        if any(one.name.casefold() == name.casefold() for one in self.all()):
            raise SpeckitError("E063", f"there already is a checkpoint '{name}'")

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Locks the folder for writing and removes the unfinished files of earlier processes.

        Raises E062 when the folder cannot be written to.
        """
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            # the lock ends with the descriptor, also when the process is killed
            lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, FOR_THE_OWNER)
        except OSError as error:
            raise SpeckitError("E062", f"nothing can be written to {self.path}: {error.strerror}") from error
        try:
            if sys.platform != "win32":
                with suppress(OSError):  # some network file systems have no locks
                    fcntl.flock(lock, fcntl.LOCK_EX)
            self._remove_unfinished()
            yield
        finally:
            os.close(lock)

    @contextmanager
    def partial(self) -> Iterator[Path]:
        """The path of a temporary file, which is removed afterwards unless it was renamed. Inside `changing`."""
        path = self.path / f"{os.getpid()}-{os.urandom(4).hex()}{_PARTIAL}"
        try:
            yield path
        finally:
            for left in self.path.glob(f"{path.name}*"):  # a store may have a log and its index next to it
                with suppress(OSError):
                    left.unlink()

    def add(self, partial: Path, checkpoint: Checkpoint) -> None:
        """Makes a written file a checkpoint. It exists once its description has its name. Inside `changing`."""
        # Order for crash safety: sync and rename the file, then the description, then sync the folder.
        _sync(partial)
        partial.rename(self.file_of(checkpoint))
        leaf = self.path / f"{checkpoint.name}{_LEAF}"
        written = leaf.with_suffix(_PARTIAL)
        about = {key: value for key, value in asdict(checkpoint).items() if key != "problem"}
        with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FOR_THE_OWNER), "w") as file:
            json.dump(about, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        written.rename(leaf)
        _sync(self.path)

    def remove(self, checkpoint: Checkpoint) -> None:
        """Removes a checkpoint, its description first, and files saved with it, except those of a deletion. Inside
        `changing`. Raises E062."""
        try:
            (self.path / f"{checkpoint.name}{_LEAF}").unlink(missing_ok=True)
            if checkpoint.file:
                self.file_of(checkpoint).unlink(missing_ok=True)
            if self.ending == ENDING:
                shutil.rmtree(self.aside(checkpoint.name), ignore_errors=True)
        except OSError as error:
            raise SpeckitError("E062", f"'{checkpoint.name}' could not be removed: {error.strerror}") from error

    def drop_old(self, keep: int, days: float | None, now: float, spared: Sequence[str]) -> list[str]:
        """Removes old checkpoints. Inside `changing`.

        Args:
            keep: Number of latest checkpoints to keep.
            days: Age in days beyond which they are removed; None for no limit.
            now: The time, in epoch seconds.
            spared: Names of checkpoints that are never removed.

        Returns:
            The names of the removed checkpoints.
        """
        dropped = []
        for place, one in enumerate(self.all()):
            old = days is not None and now - one.created_at > days * 86_400
            if (place >= keep or old) and one.name not in spared:
                self.remove(one)
                dropped.append(one.name)
        return dropped

    def _remove_unfinished(self) -> None:
        wanted = {one.file for one in self.all()}
        for file in self.path.iterdir():
            # "in" rather than a suffix test: an unfinished store may have a log and its index next to it
            if _PARTIAL in file.name or (_FILE in file.suffixes and file.name not in wanted):
                file.unlink(missing_ok=True)

    def _read(self, leaf: Path) -> Checkpoint:
        try:
            about = json.loads(leaf.read_text(encoding="utf-8"))
            if set(about) != {one.name for one in fields(Checkpoint)} - {"problem"}:
                # a description by another version, or edited by hand: never guess its meaning
                raise ValueError("it has other entries")
            wrong = [key for key, kind in _TYPES.items() if not isinstance(about[key], kind)]
            # the name of the file is checked, since it is joined to the path of the folder
            if wrong or about["name"] != leaf.stem or not re.fullmatch(r"[0-9a-f]{16}\.db", about["file"]):
                raise ValueError(f"its entry '{(wrong or ['name'])[0]}' is invalid")
        except (OSError, ValueError, TypeError, AttributeError) as error:
            return Checkpoint(leaf.stem, 0.0, "", {}, "", "", "", 0, "", {}, problem=f"{leaf.name} is torn: {error}")
        return Checkpoint(**(about | {"faults": tuple(map(str, about["faults"])), "problem": self._torn(about)}))

    def _torn(self, about: Mapping[str, Any]) -> str:
        try:
            size = (self.path / about["file"]).stat().st_size
        except OSError as error:
            return f"its file {about['file']} cannot be read: {error.strerror}"
        return "" if size == about["bytes"] else f"its file has {size} bytes, not {about['bytes']}"


def digest(file: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with file.open("rb") as read:
        return hashlib.file_digest(read, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system has folders that can be synchronised
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
