"""Types of parameters that several operations share: their limits, and the options of some."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from speckit_memory.server.operations.operation import Option

Folder = Annotated[str, Field(max_length=200, description="And all below")]
Name = Annotated[str, Field(max_length=200)]
Limit = Annotated[int, Field(strict=True, ge=1, le=100)]
MemoryName = Annotated[str | int, Field(description="Id or key")]
Keys = Annotated[list[str | int], Field(max_length=20)]
"""Memories by id or key."""
CheckpointName = Annotated[str, Field(min_length=1, max_length=100)]
Phrases = Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=100)]
Tier = Literal["constitutional", "critical", "important", "normal", "temporary", "deprecated"]
Flag = Annotated[bool, Field(strict=True)]
TierName = Literal["constitutional", "critical", "important", "normal", "temporary"]
"""Without `deprecated`: no search finds such memories (feature F7)."""
ContextType = Literal["research", "implementation", "decision", "discovery", "general"]
Intent = Literal["add_feature", "fix_bug", "refactor", "security_audit", "understand", "find_spec", "find_decision"]
State = Literal["HOT", "WARM", "COLD", "DORMANT", "ARCHIVED"]
Required = Annotated[str, Field(min_length=1, max_length=200)]
Score = Annotated[int, Field(strict=True, ge=0, le=100)]
Gap = Annotated[str, Field(max_length=500)]
Gaps = Annotated[list[Gap], Field(max_length=50)]
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
