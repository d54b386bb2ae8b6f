"""Detects files that a scan missed because they were being rewritten: a checkout deletes a file and creates it again.

Such a file is not gone. Its memory stays with its id and learned state, and the next run reads the file; a watcher is
notified because it changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from stat import S_ISREG
from unicodedata import normalize

from speckit_memory.config.workspace.options import SourcePatterns
from speckit_memory.errors import Problem
from speckit_memory.memory.parsing.keys import folder_of, with_folders
from speckit_memory.memory.scanning.scanner import Scan, below_any
from speckit_memory.memory.scanning.selection import FileSelection, OneByOne


class ReappearedFiles:
    """The files of one run that have returned. It may be asked several times; rejected keys are remembered.

    `overruling` are the keys of earlier sources that are only included because they were named; the scan also read
    those below its paths.
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
        """Return the keys, of those the scan did not find, whose files exist now and would be taken.

        Excluded files do not count, nor files that the scan took under another name: through another link, or in
        another spelling on a case-insensitive file system.
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
        """Return a problem for each named path that was missing and has returned, itself or files below it."""
        places = {place for key in self._back for place in with_folders(key)}
        hint = "Another program was writing it. Its memories stay unchanged until the next run."
        return [
            Problem("E010", f"{key}: missing during this run, and back now", hint, ("index it again",), retryable=True)
            for key in self._found.missing
            if key in places
        ]

    def _is_there(self, key: str) -> bool:
        """Whether the file exists and neither it nor a parent folder is a link."""
        with suppress(OSError, ValueError):  # an inaccessible file was inaccessible to the scan as well
            if S_ISREG((self._root / key).lstat().st_mode):
                folder = folder_of(key)
                if folder not in self._by_itself:
                    # realpath per folder is expensive, and many keys share a folder.
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
            selection = FileSelection.below(self._root / source, self._root, self._patterns)
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
