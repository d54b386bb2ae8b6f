"""No component keeps anything of a search: several threads share each, and states of the store come and go."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from components.flags import EXCLUSIVE, OPEN, opened
from frame.observed import NOW, through
from pydantic import BaseModel
from storing.project import QUESTIONS, living

from speckit_memory.config.pipelines.sources import presets
from speckit_memory.engine.components import registry
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.roles.composition import BoundStep, Pipeline

PIPELINES: dict[str, Pipeline] = {
    **{name: build(name, registry(), {}) for name in presets()},
    "every flag": build("catalogue", registry(), OPEN),
    **{f"with {name}": build("catalogue", registry(), opened(name)) for name in EXCLUSIVE},
}
PLACES = (0, 1, 3, 9, 16, 19, 20, 21, 26, 27, 28)


def steps(pipeline: Pipeline) -> list[BoundStep[Any]]:
    c, f = pipeline.candidates, pipeline.fusion
    return [*c.understand, *c.channels, *c.recover, f.fuser, *f.signals, *pipeline.rerank, *pipeline.annotate]


def picture(value: Any) -> Any:
    """All that can be reached from a value, as plain data. A kind of value that this does not know is refused."""
    if value is None or isinstance(value, bool | int | float | str | re.Pattern | Enum | Path | FunctionType | type):
        return value
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return [(picture(key), picture(part)) for key, part in value.items()]
    if isinstance(value, frozenset | set):
        return sorted(map(repr, map(picture, value)))
    if isinstance(value, list | tuple):
        return [picture(part) for part in value]
    if is_dataclass(value):
        return type(value), [(field.name, picture(getattr(value, field.name))) for field in fields(value)]
    if isinstance(value, BaseModel) or type(value).__module__.startswith("speckit_memory."):
        return type(value), held(value)
    raise AssertionError(f"a component holds {type(value)}, which may change unseen")


def held(thing: Any) -> Any:
    """What an object has in its attributes."""
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(thing, name)]
    named = {name: getattr(thing, name) for name in slots if name not in ("__dict__", "__weakref__")}
    return picture({**named, **getattr(thing, "__dict__", {})})


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("name", PIPELINES)
def test_a_component_is_after_searches_what_it_was_before(tmp_path: Path, name: str) -> None:
    """The first searches find a store that nothing has been asked of; the same are made once more."""
    pipeline = PIPELINES[name]

    def state() -> Iterator[tuple[str, Any]]:
        yield from ((step.id, held(step.component)) for step in steps(pipeline))

    before = dict(state())
    with living(tmp_path, NOW) as memory:
        behind = through(memory, pipeline)
        for place in (*PLACES, *PLACES):
            asked = QUESTIONS[place]
            behind.search(asked.text, now=NOW, deadline_ms=None, **asked.arguments)
            for step, now in state():
                assert now == before[step], f"{step} has kept something of the question {asked.text!r}"


def test_every_component_takes_part() -> None:
    used = {step.use for pipeline in PIPELINES.values() for step in steps(pipeline)}

    assert {entry.name for entry in registry()} - used == set()
