"""Suggests a folder when a named one has no memories."""

from __future__ import annotations

from collections.abc import Iterable

from speckit_memory.memory.parsing.keys import with_folders


def near_folder(typed: str, known: Iterable[str]) -> str:
    """The one folder that ends with the typed name (`docs/adr` for `adr`), or that the typed absolute path ends with.

    "" if there is none or several. `known` are folders with memories.
    """
    folders = {place for name in known for place in with_folders(name)}
    longer = {name for name in folders if name.endswith(f"/{typed}")}
    # several folders may end an absolute path: take the longest, which is the innermost
    shorter = max((name for name in folders if name and typed.endswith(f"/{name}")), key=len, default="")
    return longer.pop() if len(longer) == 1 else "" if longer else shorter
