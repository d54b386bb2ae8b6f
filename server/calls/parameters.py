"""Parameters shared by tools, with their limits and descriptions."""

from typing import Annotated, Literal

from pydantic import Field

Folder = Annotated[str, Field(max_length=200, description="And all below")]
Name = Annotated[str, Field(max_length=200)]
Anchors = Annotated[list[Name], Field(max_length=20, description="Only these sections")]
SessionId = Name
Limit = Annotated[int, Field(strict=True, ge=1, le=100)]
TokenBudget = Annotated[int, Field(strict=True, ge=200, le=100_000, description="Of the answer")]
MemoryName = Annotated[str | int, Field(description="Id or key")]
Keys = Annotated[list[str | int], Field(max_length=20)]
"""Memories by id or key."""
CheckpointName = Annotated[str, Field(min_length=1, max_length=100)]
Phrases = Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=100)]
Tier = Literal["constitutional", "critical", "important", "normal", "temporary", "deprecated"]
Dedup = Annotated[bool, Field(strict=True, description="false: send repeats")]
Flag = Annotated[bool, Field(strict=True)]
TierName = Literal["constitutional", "critical", "important", "normal", "temporary"]
"""Without `deprecated`: no search finds such memories (feature F7)."""
ContextType = Literal["research", "implementation", "decision", "discovery", "general"]
Intent = Literal["add_feature", "fix_bug", "refactor", "security_audit", "understand", "find_spec", "find_decision"]
Wish = Annotated[bool | None, Field(strict=True)]
"""True, false, or null for the pipeline's setting."""
State = Literal["HOT", "WARM", "COLD", "DORMANT", "ARCHIVED"]
Required = Annotated[str, Field(min_length=1, max_length=200)]
Score = Annotated[int, Field(strict=True, ge=0, le=100)]
Gap = Annotated[str, Field(max_length=500)]
Gaps = Annotated[list[Gap], Field(max_length=50)]
