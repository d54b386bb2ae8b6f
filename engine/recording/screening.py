"""Removes secrets from texts other than documents, such as evidence and gaps, by the rules for documents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.errors.names import displayable_name
from speckit_memory.memory.intake import secrets
from speckit_memory.memory.intake.secrets import Secret


def screen_text(text: str, root: Path) -> tuple[str, tuple[Secret, ...]]:
    """The text without secrets, by the rules of the workspace at `root`, and the secrets removed."""
    given = displayable_name(text)
    if not secrets.redact(given, addresses=True)[1]:  # most texts: no need to read the rules
        return given, ()
    rules = load_workspace_config(root).saving
    return (given, ()) if rules.secrets == "keep" else secrets.redact(given, addresses=rules.secrets == "all")


def storable(value: Any, root: Path) -> Any:
    """Plain data with all of its texts, names included, passed through `screen_text`."""
    return with_texts(value, lambda text: screen_text(text, root)[0])


def with_texts(value: Any, changed: Callable[[str], str]) -> Any:
    """Plain data with all of its texts, names included, passed through `changed`."""
    match value:
        case str():
            return changed(value)
        case dict():
            return {with_texts(name, changed): with_texts(each, changed) for name, each in value.items()}
        case list() | tuple():
            return type(value)(with_texts(each, changed) for each in value)
    return value
