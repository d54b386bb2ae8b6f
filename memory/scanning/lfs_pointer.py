"""Detects Git LFS pointers, which replace a document whose content was not fetched (feature I1)."""

from __future__ import annotations

import re

POINTER = "pointer of Git LFS"
"""The reason given for skipping such a file; `git lfs pull` fetches its content."""
_FORM = re.compile(
    r"version https://(?:git-lfs|hawser)\.github\.com/spec/v1\n"
    r"(?:[a-z0-9.-]+ .+\n)*oid sha256:[0-9a-f]{64}\nsize \d+\s*"
)
_LARGEST = 1024
"""Characters; the specification allows pointers of fewer than 1,024 bytes."""


def is_pointer(text: str) -> bool:
    """Whether a whole text is a Git LFS pointer, rather than a document that quotes one."""
    return len(text) < _LARGEST and _FORM.fullmatch(text.replace("\r\n", "\n")) is not None
