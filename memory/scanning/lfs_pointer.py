"""Files of Git LFS whose content was not fetched: what they hold says where a document is, and is none (feature I1)."""

from __future__ import annotations

import re

POINTER = "pointer of Git LFS"
"""Why such a file is left out; `git lfs pull` brings its content."""
_FORM = re.compile(
    r"version https://(?:git-lfs|hawser)\.github\.com/spec/v1\n"
    r"(?:[a-z0-9.-]+ .+\n)*oid sha256:[0-9a-f]{64}\nsize \d+\s*"
)
_LARGEST = 1024
"""Characters; the specification allows no more bytes."""


def is_pointer(text: str) -> bool:
    """Whether a text is a pointer as Git LFS writes it, and not one that tells of pointers."""
    return len(text) < _LARGEST and _FORM.fullmatch(text.replace("\r\n", "\n")) is not None
