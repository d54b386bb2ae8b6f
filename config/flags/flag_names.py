"""Names of feature flags, and suggestions for misspelt ones."""

from __future__ import annotations

from collections.abc import Collection

from speckit_memory.errors import closest

PREFIX = "SPECKIT_"


def nearest_flag_name(name: str, known: Collection[str]) -> str:
    """The known name that was most likely intended, "" if none is close.

    Names of variants and typed names have no prefix and are in lower case: "rsf_fusion", "rsf-fusion". The common
    prefix is ignored, since it would make any two names similar.
    """
    bare = {one.removeprefix(PREFIX): one for one in known}
    wanted = name.strip().replace("-", "_").upper().removeprefix(PREFIX)
    return bare.get(wanted) or bare.get(closest(wanted, bare), "")


def nearest_flag(name: str, known: Collection[str]) -> str:
    """A phrase with the intended name, or with the command that lists all names."""
    close = nearest_flag_name(name, known)
    return f"did you mean '{close}'?" if close else "see `speckit-memory flags list`"
