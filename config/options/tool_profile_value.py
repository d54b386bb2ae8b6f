"""Reads the key `profile` of `config.yaml`."""

from __future__ import annotations

from speckit_memory.config.options.tool_profile import TOOL_PROFILES, ToolProfile
from speckit_memory.config.options.workspace_values import empty, form
from speckit_memory.config.yaml.reader import MappingEntry, Scalar
from speckit_memory.errors import Problem


def tool_profile_of(entry: MappingEntry | None, problems: list[Problem]) -> ToolProfile:
    """The value of `profile`. Invalid values are added to `problems` and count as absent."""
    if entry is None or empty(entry.value):
        return "full"
    written = entry.value.value if isinstance(entry.value, Scalar) else None
    for accepted in TOOL_PROFILES:
        if written == accepted:
            return accepted
    problems.append(form(entry.value, "'profile'", " or ".join(f'"{each}"' for each in TOOL_PROFILES)))
    return "full"
