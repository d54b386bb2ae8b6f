"""The tunable parameters of a pipeline: those whose declaration names a range to search."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from speckit_memory.errors import Problem, SpeckitError, nearest
from speckit_memory.pipeline.configuration.binding import BoundParameters

PROPOSALS = 4
"""Number of values tried in one visit of a parameter, one from each equal part of the window."""

LOG_RATIO = 5.0
"""Ranges whose ends differ by at least this factor, both above 0, are searched by ratio instead of by difference."""

Setting = Mapping[str, float]
"""The value of each parameter that differs from the given pipeline, by the parameter's name."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number of one step, and the range `low` to `high` in which it is searched; `start` is its present value.

    `path` leads to the number inside the step's parameters: one key, or several for a value of a mapping, such as the
    weight of one channel.
    """

    step: str
    path: tuple[str, ...]
    low: float
    high: float
    start: float
    integer: bool

    @property
    def name(self) -> str:
        """step.key, or step.key.key for a value of a mapping."""
        return ".".join((self.step, *self.path))

    def proposals(self, current: float, share: float, rng: np.random.Generator) -> list[float]:
        """Values to try in addition to the current one, the farthest first.

        The window is `share` of the range, centred on the current value as far as the range allows. Each of its equal
        parts gives one value, drawn uniformly and rounded to a readable number.
        """
        low, high, here = (self._scaled(value) for value in (self.low, self.high, current))
        width = share * (high - low)
        # Shifted, not cut, at the ends of the range: the window keeps its width there.
        first = min(max(here - width / 2, low), high - width)
        # stratified: one uniform draw in each of PROPOSALS equal parts
        drawn = first + width * (np.arange(PROPOSALS) + rng.random(PROPOSALS)) / PROPOSALS
        values = {self._rounded(math.exp(place) if self._by_ratio else place) for place in drawn.tolist()} - {current}
        # Farthest first by the scaled distance; equal distances in ascending order, so that a seed repeats its order.
        return sorted(values, key=lambda value: (-abs(self._scaled(value) - here), value))

    @property
    def _by_ratio(self) -> bool:
        return self.low > 0 and self.high / self.low >= LOG_RATIO

    def _scaled(self, value: float) -> float:
        # max: a present value below the range has no place in it, and its logarithm may not exist.
        return math.log(max(value, self.low)) if self._by_ratio else value

    def _rounded(self, value: float) -> float:
        """To about a hundredth of the range, and inside it."""
        # Digits after the point that keep two significant ones of the range; negative digits round to tens and
        # hundreds.
        near = round(value) if self.integer else round(value, round(2 - math.log10(self.high - self.low)))
        return min(max(near, self.low), self.high)


def tunable(bound: Iterable[BoundParameters], wanted: Sequence[str] = ()) -> tuple[Parameter, ...]:
    """The tunable parameters of the scoring steps, in running order; only the `wanted` ones if any are named.

    A name selects one parameter, or all values of a mapping. Parameters that hold a word instead of a number, such as
    `by_intent`, are not searched. Raises SpeckitError (E033) for every wanted name that selects nothing.
    """
    found = tuple(parameter for entry in bound if entry.step.slot != "annotate" for parameter in _of(entry))
    names = [parameter.name for parameter in found]
    unknown = [name for name in wanted if not any(_within(other, name) for other in names)]
    if unknown:
        raise SpeckitError.of(
            Problem("E033", f"'{name}' is not a tunable parameter of this pipeline; {nearest(name, names)}")
            for name in unknown
        )
    if not found:
        raise SpeckitError("E030", "no step of this pipeline has a parameter that is declared tunable")
    return tuple(p for p in found if not wanted or any(_within(p.name, name) for name in wanted))


def overrides(setting: Setting) -> dict[str, str]:
    """A setting as overrides for loading a pipeline: "step.parameter" or "step.parameter.key" to YAML text."""
    return {name: json.dumps(value) for name, value in setting.items()}


def _within(name: str, whole: str) -> bool:
    return name == whole or name.startswith(f"{whole}.")


def _values(entry: BoundParameters) -> dict[str, Any]:
    assert entry.params is not None  # only pipelines without problems are tuned
    return entry.params.model_dump(mode="json", by_alias=True)


def _of(entry: BoundParameters) -> Iterator[Parameter]:
    assert entry.registered is not None  # only pipelines without problems are tuned
    schema = entry.registered.params.model_json_schema(by_alias=True)
    for path, node, value in _numbers(schema, _values(entry), (), schema.get("$defs", {})):
        low, high = node["tunable"]
        yield Parameter(entry.step.id, path, low, high, value, isinstance(value, int))


def _numbers(
    node: Mapping[str, Any], value: Any, path: tuple[str, ...], definitions: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any], float]]:
    """Every number that its schema declares tunable, at any depth of the parameters."""
    if "$ref" in node:
        # "#/$defs/Name" of JSON Schema: the last part is the key of the definition.
        node = definitions[node["$ref"].rpartition("/")[2]]
    if isinstance(value, dict):
        for key, item in value.items():
            # An optional mapping is `anyOf: [object, null]`; the form that knows the key is the one to follow.
            for form in (node, *node.get("anyOf", ())):
                inner = form.get("properties", {}).get(key) or form.get("additionalProperties")
                if isinstance(inner, dict):
                    yield from _numbers(inner, item, (*path, key), definitions)
    # bool is an int in Python, but a switch is no number to tune.
    elif "tunable" in node and isinstance(value, int | float) and not isinstance(value, bool):
        yield path, node, value
