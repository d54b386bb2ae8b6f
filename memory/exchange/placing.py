"""Files of a workspace that an import makes or writes over: all of them, or none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing import placed_file


class Placing:
    """Writes files one after the other; those that were written over lie in another folder, under the same paths."""

    def __init__(self, root: Path, aside: Path) -> None:
        """`aside` is made when it is needed."""
        self.written: list[str] = []
        self._root = root
        self._aside = aside
        self._over: set[str] = set()
        self._at = str(root)

    @contextmanager
    def undone_on_error(self) -> Iterator[Self]:
        """Puts everything back as it was when the block raises. Raises E066 for what the system refuses."""
        try:
            yield self
        except BaseException as error:
            self._undo()
            if isinstance(error, OSError):
                raise SpeckitError("E066", f"{self._at}: {(error.strerror or str(error)).lower()}") from error
            raise

    def put(self, key: str, data: bytes, *, over: bool, mtime_ns: int | None) -> None:
        """Writes one file of the workspace; to write `over` one, that is copied aside first. Raises OSError."""
        self._at = key
        if over:
            kept = self._aside / key
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self._root / key, kept)
            self._over.add(key)
        self.written.append(key)
        try:
            placed_file.put(self._root, key, data, over=over, mtime_ns=mtime_ns, sync=True)
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
                        (self._root / parent).rmdir()
        if self._over:
            shutil.rmtree(self._aside, ignore_errors=True)
