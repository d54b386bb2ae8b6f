"""Names of files for documents that come without one (feature T4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from unicodedata import normalize

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake import secrets

FOLDER = "memories"
"""Where documents are put that name no folder."""
LONGEST_NAME = 60
"""Characters of a name without its suffix; every file system takes four times as many bytes."""
MOST_ALIKE = 1000
"""So many files of one name are told apart by a number."""
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", *(f"{device}{number}" for device in ("com", "lpt") for number in range(1, 10))}
)
"""Names that Windows gives to devices, whatever follows them."""
_WORDS = re.compile(r"[^\W_]+")


def file_name(title: str) -> str:
    """The name of a file for a title, without suffix: its words in small letters. Never empty, and never a secret."""
    name = ""
    shown, _ = secrets.redact(title)  # in small letters, without its marks, a secret is none that `named` knows
    for word in _WORDS.findall(normalize("NFC", shown).casefold()):
        if len(name) + len(word) >= LONGEST_NAME:
            name = name or word[:LONGEST_NAME]
            break
        name = f"{name}-{word}" if name else word
    if not name or secrets.named(f"{name}.md"):
        return "note"
    return f"note-{name}" if name in _RESERVED else name


def possible_keys(folder: str, title: str) -> Iterator[str]:
    """The keys that a new Markdown file in a folder ("" is the root) may have, in the order in which they are tried."""
    name = file_name(title)
    for number in range(1, MOST_ALIKE + 1):
        yield str(PurePosixPath(folder, f"{name}{'' if number == 1 else f'-{number}'}.md"))


def free_key(folder: str, title: str, taken: Callable[[str], bool]) -> str:
    """The key of a new Markdown file in a folder ("" is the root) that nothing has yet. Raises E101 when there are
    too many of one name."""
    for key in possible_keys(folder, title):
        if not taken(key):
            return key
    name = file_name(title)
    raise SpeckitError("E101", f"there are {MOST_ALIKE} files called {name} in '{folder}'", actions=("give a path",))
