"""Types of parameters that several operations share, and their options."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from speckit_memory.server.calls.parameters import Flag, Folder, MemoryName, Name
from speckit_memory.server.operations.operation import Option

RARE = "agents need it too rarely to read its definition in every session"
"""Why an operation is no tool."""
ID_OR_KEY = "ID|KEY"
Number = Annotated[int, Field(strict=True, ge=1, le=2**63 - 1)]
"""Number of a link, change or judgement, as tables show it."""
HistoryLimit = Annotated[int, Field(strict=True, ge=1, le=10_000), Option("Maximum number, the latest first.")]
Relation = Literal["caused", "enabled", "supersedes", "contradicts", "derived_from", "supports"]
Direction = Literal["outgoing", "incoming", "both"]
MemoryKey = Annotated[MemoryName, Option("Id or key of the memory.", tool="id", argument=True, metavar=ID_OR_KEY)]
InFolder = Annotated[Folder, Option("Only the memories of this folder and below.", tool="specFolder")]
Session = Annotated[Name, Option("Name of the session.", tool="sessionId")]
DryRun = Annotated[Flag, Option("Show what would be done without doing it.")]
