"""Private folders: in a store that several people share, what lies in `private/NAME/` is for the principal NAME alone."""

from __future__ import annotations

PRIVATE = "private"
"""The folder in the root of a workspace, in lower or upper case."""


def private_owner(key: str) -> str:
    """The principal that a path relative to the workspace belongs to, "" if it is for everybody.

    In PostgreSQL, the function `owner_of` does the same.
    """
    top, _, rest = key.partition("/")
    owner, slash, _ = rest.partition("/")
    return owner if slash and top.lower() == PRIVATE else ""
