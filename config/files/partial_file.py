"""Names of files being written: each is in the folder of the file whose name it gets in the end."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

PREFIX = ".speckit-"
_NAME = re.compile(re.escape(PREFIX) + r"[0-9a-f]{16}\.tmp")


def partial_in(folder: Path) -> Path:
    """A new unpredictable path in a folder: at a predictable one, an attacker could place a link to another file."""
    return folder / f"{PREFIX}{secrets.token_hex(8)}.tmp"


def is_partial(name: str) -> bool:
    """Whether a file has such a name."""
    return _NAME.fullmatch(name) is not None
