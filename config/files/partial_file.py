"""How files are called that are not whole yet: they lie beside the one whose name they take in the end."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

PREFIX = ".speckit-"
_NAME = re.compile(re.escape(PREFIX) + r"[0-9a-f]{16}\.tmp")


def partial_in(folder: Path) -> Path:
    """A new name in a folder, which nobody can guess: what lies at a guessed one may be a link to another file."""
    return folder / f"{PREFIX}{secrets.token_hex(8)}.tmp"


def is_partial(name: str) -> bool:
    """Whether a file is called so."""
    return _NAME.fullmatch(name) is not None
