"""Which tools an agent is offered: each definition takes space in the context of every conversation."""

from __future__ import annotations

from typing import Literal

ToolProfile = Literal["core", "full"]
"""`core`: the tools for daily work, `full`: every tool (docs/decisions/0073-recall-per-token.md)."""
TOOL_PROFILES: tuple[ToolProfile, ...] = ("core", "full")
