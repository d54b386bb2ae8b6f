"""Types of parameters that several operations share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

RARE = "agents need it too rarely to read its definition in every session"
"""Why an operation is no tool."""
ID_OR_KEY = "ID|KEY"
Number = Annotated[int, Field(strict=True, ge=1, le=2**63 - 1)]
"""Number of a link, change or judgement, as tables show it."""
HistoryLimit = Annotated[int, Field(strict=True, ge=1, le=10_000)]
Relation = Literal["caused", "enabled", "supersedes", "contradicts", "derived_from", "supports"]
Direction = Literal["outgoing", "incoming", "both"]
