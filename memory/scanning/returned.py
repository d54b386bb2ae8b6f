"""Files that a scan missed because somebody was writing them anew: a checkout takes a file away and makes it again.

Such a file is not gone. What is stored of it stays, with its id and all that was learned of it, and the next run reads
it: whoever watches is told of it, as it has changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from stat import S_ISREG
from unicodedata import normalize

from speckit_memory.config.workspace.workspace_file import SourcePatterns
from speckit_memory.errors import Problem
from speckit_memory.memory.parsing.keys import folder_of, with_folders
from speckit_memory.memory.scanning.scanner import Scan, below_any
from speckit_memory.memory.scanning.selection import OneByOne, Selection


class Returned:
    """The files of one run that are back. It may look several times: what it has judged, it does not judge again.

    `overruling` are the keys of earlier sources that only their names bring in; those below what the scan covers were
    looked at as well.
    """

    def __init__(self, found: Scan, root: Path, patterns: SourcePatterns, overruling: Iterable[str]) -> None:
        self._found = found
        self._root = root
        self._patterns = patterns
        covered = frozenset(found.covered)
        self._sources = covered.union(key for key in overruling if below_any(key, covered))
        self._back: list[str] = []
        self._not_taken: set[str] = set()
        self._selected: dict[str, OneByOne] = {}
        self._by_itself: dict[str, bool] = {}

    def among(self, keys: Iterable[str]) -> list[str]:
        """Those of the keys, at which the scan found nothing, that are files now which it would take.

        What was left out is none of them, nor what the scan took by another name: that of another link, or another
        spelling where the file system makes no difference.
        """
        back: list[str] = []
        for key in keys:
            if key not in self._not_taken and self._is_there(key):
                if self._would_be_taken(key):
                    back.append(key)
                else:
                    self._not_taken.add(key)
        self._back += back
        return back

    def remarks(self) -> list[Problem]:
        """What is said of the paths that were named, missing, and found to be back, themselves or files below them."""
        places = {place for key in self._back for place in with_folders(key)}
        hint = "Another program was writing it. What is stored of it stays as it is until the next run."
        return [
            Problem(
                "E010", f"{key}: gone while this run looked, and back now", hint, ("index it again",), retryable=True
            )
            for key in self._found.missing
            if key in places
        ]

    def _is_there(self, key: str) -> bool:
        """Whether the file is there by itself: neither it nor a folder on the way is a link."""
        with suppress(OSError, ValueError):  # what may not be looked at was so for the scan as well
            if S_ISREG((self._root / key).lstat().st_mode):
                folder = folder_of(key)
                if folder not in self._by_itself:
                    self._by_itself[folder] = Path(os.path.realpath(self._root / folder)) == self._top / folder
                return self._by_itself[folder]
        return False

    def _would_be_taken(self, key: str) -> bool:
        return _spelled(key) not in self._taken and any(
            place == key or not self._below(place).reason(self._root / key)
            for place in with_folders(key)
            if place in self._sources
        )

    def _below(self, source: str) -> OneByOne:
        if source not in self._selected:
            selection = Selection.below(self._root / source, self._root, self._patterns)
            self._selected[source] = OneByOne(selection)
        return self._selected[source]

    @cached_property
    def _top(self) -> Path:
        return Path(os.path.realpath(self._root))

    @cached_property
    def _taken(self) -> frozenset[str]:
        return frozenset(map(_spelled, (*self._found.files, *(other for _, other in self._found.links))))


def _spelled(key: str) -> str:
    return normalize("NFC", key).casefold()
