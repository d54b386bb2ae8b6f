"""Private folders: in a store in PostgreSQL, what is in `private/NAME/` is for the principal NAME alone."""

from __future__ import annotations

from collections.abc import Callable

from speckit_memory.errors import Problem

KeyTest = Callable[[str], bool]
"""Whether a key, or a folder with a slash at its end, is in the private folder of another principal."""
PRIVATE = "private"
"""The folder in the root of a workspace, in lower or upper case."""


def private_owner(key: str) -> str:
    """The principal that a path relative to the workspace belongs to, "" if it is for everybody.

    In PostgreSQL, the function `owner_of` does the same.
    """
    top, _, rest = key.partition("/")
    owner, slash, _ = rest.partition("/")
    return owner if slash and top.lower() == PRIVATE else ""


def of_another(key: str, principal: str) -> bool:
    """Whether a key, or a folder with a slash at its end, is in the private folder of another principal than this."""
    return private_owner(key) not in ("", principal)


def nothing_closed(_key: str) -> bool:
    """The test for a store in a file, where everything is shared."""
    return False


def closed_problem(named: str) -> Problem:
    """The problem with a path in the private folder of another principal, whether or not there is anything."""
    return Problem(
        "E014",
        f"'{named}' is in the private folder of another principal",
        "In a store in PostgreSQL, private/NAME/ is for the principal NAME alone (docs/postgresql.md).",
        actions=("choose another path", "if it is yours, set SPECKIT_PRINCIPAL"),
    )
