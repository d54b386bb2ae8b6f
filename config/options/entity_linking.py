"""Whether documents that name the same are linked (feature M10)."""

from __future__ import annotations

from typing import Literal

EntityLinking = Literal["off", "link"]
"""`link` has the background work do so; with `off` it is done when somebody asks for it."""
ENTITY_LINKING: tuple[EntityLinking, ...] = ("off", "link")
