"""Names the files of documents that come without a name (feature T4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from unicodedata import normalize

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake import secrets

FOLDER = "memories"
"""The folder for documents that come without one."""
LONGEST_NAME = 60
"""Characters of a name without suffix; every file system allows four times as many bytes."""
MOST_ALIKE = 1000
"""Maximum number of files with the same name, distinguished by a number."""
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", *(f"{device}{number}" for device in ("com", "lpt") for number in range(1, 10))}
)
"""Device names on Windows, also with a suffix."""
_WORDS = re.compile(r"[^\W_]+")


def file_name(title: str) -> str:
    """The file name for a title, without suffix: its words in lower case. Never empty, never a secret."""
    name = ""
    shown, _ = secrets.redact(title)  # before lower-casing, after which `named` would not recognise a secret
    for word in _WORDS.findall(normalize("NFC", shown).casefold()):
        # Cut at a word; only a single long word is cut inside.
        if len(name) + len(word) >= LONGEST_NAME:
            name = name or word[:LONGEST_NAME]
            break
        name = f"{name}-{word}" if name else word
    if not name or secrets.secret_kind_of_name(f"{name}.md"):
        return "note"
    return f"note-{name}" if name in _RESERVED else name


def possible_keys(folder: str, title: str) -> Iterator[str]:
    """Possible keys of a new Markdown file in a folder ("" is the root), in order of preference."""
    name = file_name(title)
    for number in range(1, MOST_ALIKE + 1):
        yield str(PurePosixPath(folder, f"{name}{'' if number == 1 else f'-{number}'}.md"))


def free_key(folder: str, title: str, taken: Callable[[str], bool]) -> str:
    """The first unused key of a new Markdown file in a folder ("" is the root). Raises E101 when there are too many
    files with the same name."""
    for key in possible_keys(folder, title):
        if not taken(key):
            return key
    name = file_name(title)
    raise SpeckitError("E101", f"there are {MOST_ALIKE} files called {name} in '{folder}'", actions=("give a path",))
