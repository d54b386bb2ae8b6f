"""Writes the files of an import into a workspace, all or none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing import placed_file


class FileTransaction:
    """Writes files one by one; overwritten files are first copied to a backup folder, under the same paths."""

    def __init__(self, root: Path, aside: Path) -> None:
        """`aside` is the backup folder, created when needed."""
        self.written: list[str] = []
        self._root = root
        self._aside = aside
        self._over: set[str] = set()
        self._at = str(root)

    @contextmanager
    def undone_on_error(self) -> Iterator[Self]:
        """Restore everything when the block raises. Raises E066 for an OSError."""
        try:
            yield self
        except BaseException as error:
            self._undo()
            if isinstance(error, OSError):
                raise SpeckitError("E066", f"{self._at}: {(error.strerror or str(error)).lower()}") from error
            raise

    def put(self, key: str, data: bytes, *, over: bool, mtime_ns: int | None) -> None:
        """Write one file of the workspace.

        Args:
            key: Its path in the workspace.
            data: Its contents.
            over: Whether it replaces a file, which is backed up first.
            mtime_ns: Modification time to set; None for the present.

        Raises:
            OSError: The file cannot be written.
        """
        self._at = key
        if over:
            kept = self._aside / key
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self._root / key, kept)
            self._over.add(key)
        # Noted before writing: a write that fails half-way is undone as well.
        self.written.append(key)
        try:
            placed_file.put_file(self._root, key, data, over=over, mtime_ns=mtime_ns, sync=True)
        except OSError:
            self.written.remove(key)
            raise

    def _undo(self) -> None:
        for key in self.written:
            with suppress(OSError):
                if key in self._over:
                    shutil.copy2(self._aside / key, self._root / key)
                else:
                    (self._root / key).unlink()
                    for parent in Path(key).parents[:-1]:
                        # Fails for the first folder that is not empty, which ends the loop.
                        (self._root / parent).rmdir()
        if self._over:
            shutil.rmtree(self._aside, ignore_errors=True)
