"""Store links: small files at a store's path that hold the URL of a store on a server."""

from __future__ import annotations

from pathlib import Path

SCHEMES = ("postgresql://", "postgres://")


def is_url(text: str) -> bool:
    """Whether a text names a store in PostgreSQL."""
    return text.startswith(SCHEMES)


def is_link(path: Path) -> bool:
    """Whether the file at a path is a store link."""
    try:
        with path.open("rb") as file:
            return is_url(file.read(16).decode("utf-8", "replace"))
    except OSError:
        return False
