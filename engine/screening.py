"""Texts that come beside documents, such as evidence and gaps, as they may be stored: without secrets, as documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from speckit_memory.config.workspace_file import load_workspace_config
from speckit_memory.errors.names import shown

if TYPE_CHECKING:
    from speckit_memory.memory.indexing.secrets import Secret


def screened(text: str, root: Path) -> tuple[str, tuple[Secret, ...]]:
    """The text as the workspace at `root` wants it stored, and the secrets that were left out of it."""
    from speckit_memory.memory.indexing import secrets  # a search has no use for it

    given = shown(text)
    if not secrets.redact(given, addresses=True)[1]:  # most texts, whatever the workspace says
        return given, ()
    rules = load_workspace_config(root).saving
    return (given, ()) if rules.secrets == "keep" else secrets.redact(given, addresses=rules.secrets == "all")


def storable(value: Any, root: Path) -> Any:
    """Plain data with each of its texts, names included, `screened`."""
    match value:
        case str():
            return screened(value, root)[0]
        case dict():
            return {storable(name, root): storable(each, root) for name, each in value.items()}
        case list() | tuple():
            return type(value)(storable(each, root) for each in value)
    return value
