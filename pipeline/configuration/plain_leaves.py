"""The scalar values inside the parameters of a step, with the values that each accepts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from speckit_memory.pipeline.configuration.accepted_values import branches, inside
from speckit_memory.pipeline.roles.contracts import Params

Plain = float | int | str | bool | None


@dataclass(frozen=True, slots=True)
class ScalarValue:
    """One number, text, boolean or null inside the parameters.

    `path` leads to it: the parameter, and for a value of a mapping, such as the weight of one channel, its key. `forms`
    are the JSON Schemas of the accepted values, with references resolved.
    """

    path: tuple[str, ...]
    value: Plain
    forms: tuple[dict[str, Any], ...]


def leaves(params: Params) -> Iterator[ScalarValue]:
    """Every scalar value of these parameters, lists excluded, in order of declaration."""
    root = type(params).model_json_schema(by_alias=True)
    yield from _below((), params.model_dump(mode="json", by_alias=True), (root,), root)


def _below(
    path: tuple[str, ...], value: object, forms: tuple[dict[str, Any], ...], root: dict[str, Any]
) -> Iterator[ScalarValue]:
    if isinstance(value, dict):
        for key, item in value.items():
            found = (inside(form, key) for form in forms)
            inner = tuple(branch for form in found if form for branch in branches(form, root))
            yield from _below((*path, key), item, inner, root)
    elif value is None or isinstance(value, bool | int | float | str):
        yield ScalarValue(path, value, forms)
