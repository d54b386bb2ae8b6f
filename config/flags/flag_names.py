"""Names of feature flags, and which one somebody means who writes another."""

from __future__ import annotations

from collections.abc import Collection

from speckit_memory.errors import closest

PREFIX = "SPECKIT_"


def meant(name: str, known: Collection[str]) -> str:
    """The known name that was most likely meant, "" when none is close.

    Names of variants and what people type have no prefix and small letters: "rsf_fusion", "rsf-fusion". The common
    beginning does not count, as it alone would make any two names similar.
    """
    bare = {one.removeprefix(PREFIX): one for one in known}
    wanted = name.strip().replace("-", "_").upper().removeprefix(PREFIX)
    return bare.get(wanted) or bare.get(closest(wanted, bare), "")


def nearest_flag(name: str, known: Collection[str]) -> str:
    """A phrase that offers the name that was meant, or tells where all of them are listed."""
    close = meant(name, known)
    return f"did you mean '{close}'?" if close else "see `speckit-memory flags list`"
