"""Files that tests write."""

from __future__ import annotations

from pathlib import Path


def write_file(path: Path, text: str) -> Path:
    """Writes a text with the folders above it; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
