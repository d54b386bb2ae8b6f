"""The folder that somebody may have meant who named one in which no memory lies."""

from __future__ import annotations

from collections.abc import Iterable

from speckit_memory.memory.parsing.keys import with_folders


def near_folder(typed: str, known: Iterable[str]) -> str:
    """The one folder that ends with what was typed, as `adr` does for `docs/adr`, or with which that ends, as an
    absolute path does; empty where there is none or several. `known` are folders with memories."""
    folders = {place for name in known for place in with_folders(name)}
    longer = {name for name in folders if name.endswith(f"/{typed}")}
    # of the folders along an absolute path the innermost one is meant
    shorter = max((name for name in folders if name and typed.endswith(f"/{name}")), key=len, default="")
    return longer.pop() if len(longer) == 1 else "" if longer else shorter
