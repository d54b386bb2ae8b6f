"""The key `entities` of `config.yaml`: whether documents that name the same are linked (feature M10)."""

from __future__ import annotations

from typing import Literal

from speckit_memory.config.workspace_values import empty, form
from speckit_memory.config.yaml_reader import Entry, Scalar
from speckit_memory.errors import Problem

EntityLinking = Literal["off", "link"]
"""`link` has the background work do so; with `off` it is done when somebody asks for it."""

_ACCEPTED: tuple[EntityLinking, ...] = ("off", "link")


def entity_linking_of(entry: Entry | None, problems: list[Problem]) -> EntityLinking:
    """What is written under `entities`; what is wrong with it is added to the problems and counts as not written."""
    if entry is None or empty(entry.value):
        return "off"
    written = entry.value.value if isinstance(entry.value, Scalar) else None
    for accepted in _ACCEPTED:
        if written == accepted:
            return accepted
    problems.append(form(entry.value, "'entities'", " or ".join(f'"{each}"' for each in _ACCEPTED)))
    return "off"
