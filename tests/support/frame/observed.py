"""What searches answer, as plain data that can be compared to the last bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np
from components.flags import OPEN, opened
from storing.project import QUESTIONS

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.components import registry
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.serving.serving import ActiveConfiguration, ConfigurationState
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.runner import Runner

NOW = 1_800_000_000.0
ASKED = (0, 1, 3, 8, 9, 14, 16, 20, 21, 26, 27, 28, 30)
"""The places in `QUESTIONS` of those that are asked: of each kind one."""
CLEAN: dict[str, Pipeline] = {
    "default": build("default", registry(), {}),
    "catalogue": build("catalogue", registry(), OPEN),
    "quality": build("quality", registry(), {}),
    "cross-encoder": build("catalogue", registry(), opened("cross_encoder")),
}


def through(memory: Memory, pipeline: Pipeline, *, strict: bool = True) -> Memory:
    """The same open store behind another pipeline."""
    searching = Searcher(Runner(pipeline, strict=strict), memory.session.settings)
    session = copy(memory.session)
    session.configuration = ActiveConfiguration(ConfigurationState(memory.session.settings, searching))
    return Memory(session)


def searches(memory: Memory, names: Iterable[str] = tuple(CLEAN), places: Iterable[int] = ASKED) -> dict[str, Any]:
    """What pipelines without a vandal answer to the questions at these places."""
    answers = {}
    for name in names:
        behind = through(memory, CLEAN[name])
        for place in places:
            asked = QUESTIONS[place]
            found = behind.search(asked.text, now=NOW, deadline_ms=None, content=True, **asked.arguments)
            answers[f"{name}, question {place}: {asked.text}"] = observed(found)
    return answers


def observed(found: SearchResult) -> Any:
    """Rows, scores and notes of an answer, the columns behind them, and the plan; no times, nor whence words came."""
    said = found.as_json()
    del said["timings_ms"], said["query_id"]
    said["notes"].pop("words_from", None)
    return plain((said, found.outcome.pool, found.outcome.notes, found.outcome.query))


def plain(value: Any) -> Any:
    """A value as plain data: arrays as their type, shape and bytes, objects as the values of their fields."""
    if isinstance(value, np.ndarray):
        values = value.tolist() if value.dtype == np.object_ else value.tobytes().hex()
        return [str(value.dtype), list(value.shape), values]
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
