"""Whether documents that share names are linked (feature M10)."""

from __future__ import annotations

from typing import Literal

EntityLinking = Literal["off", "link"]
"""With `link`, background work does it; with `off`, only an explicit request does."""
ENTITY_LINKING: tuple[EntityLinking, ...] = ("off", "link")
