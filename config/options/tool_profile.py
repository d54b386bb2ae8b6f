"""Which tools an agent is offered: the definition of each one costs it room in every conversation."""

from __future__ import annotations

from typing import Literal

ToolProfile = Literal["core", "full"]
"""`core` holds what an agent needs in daily work, `full` every tool (docs/decisions/0073-recall-per-token.md)."""
TOOL_PROFILES: tuple[ToolProfile, ...] = ("core", "full")
