"""Reads the key `entities` of `config.yaml`."""

from __future__ import annotations

from speckit_memory.config.options.entity_linking import ENTITY_LINKING, EntityLinking
from speckit_memory.config.options.workspace_values import empty, form
from speckit_memory.config.yaml.reader import MappingEntry, Scalar
from speckit_memory.errors import Problem


def entity_linking_of(entry: MappingEntry | None, problems: list[Problem]) -> EntityLinking:
    """The value of `entities`. Invalid values are added to `problems` and count as absent."""
    if entry is None or empty(entry.value):
        return "off"
    written = entry.value.value if isinstance(entry.value, Scalar) else None
    for accepted in ENTITY_LINKING:
        if written == accepted:
            return accepted
    problems.append(form(entry.value, "'entities'", " or ".join(f'"{each}"' for each in ENTITY_LINKING)))
    return "off"
