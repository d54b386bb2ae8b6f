"""The values that a parameter accepts, from its JSON Schema, and the scalar values inside parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from speckit_memory.pipeline.roles.contracts import Params

KINDS = {
    "number": "a number",
    "integer": "a whole number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping of keys to values",
    "null": "null",
}


def schema_at(params: type[BaseModel], path: tuple[str | int, ...]) -> dict[str, Any]:
    """The schema of the value at a path, with keys as written in a file; empty if the path is unknown."""
    root = params.model_json_schema(by_alias=True)
    found: dict[str, Any] = root
    for part in path:
        found = next((inner for branch in branches(found, root) if (inner := inside(branch, part))), {})
    forms = branches(found, root)
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def describe(schema: dict[str, Any]) -> str:
    """The accepted values in words, for example "a number from 0 to 1, or by_intent"."""
    if "anyOf" in schema:
        return ", or ".join(describe(branch) for branch in schema["anyOf"])
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    kind = KINDS.get(str(schema.get("type")), "a value of another kind")
    return " ".join((kind, *_range(schema)))


def keys(schema: dict[str, Any]) -> list[str]:
    """The keys that a mapping accepts; empty if it accepts any."""
    return list(schema.get("propertyNames", {}).get("enum", ()) or schema.get("properties", ()))


def _range(schema: dict[str, Any]) -> list[str]:
    least, most, above = (schema.get(name) for name in ("minimum", "maximum", "exclusiveMinimum"))
    words = [f"from {least:g}"] if least is not None else [f"above {above:g}"] if above is not None else []
    if most is not None:
        words.append(f"to {most:g}" if least is not None else f"up to {most:g}")
    elif least is not None:
        words.append("up")
    return words


def branches(schema: dict[str, Any], root: dict[str, Any]) -> list[dict[str, Any]]:
    """The alternative forms of a value of this schema, with references resolved; `root` holds the definitions."""
    if "$ref" in schema:
        schema = root["$defs"][str(schema["$ref"]).rpartition("/")[2]]
    return [inner for branch in schema["anyOf"] for inner in branches(branch, root)] if "anyOf" in schema else [schema]


def inside(schema: dict[str, Any], part: str | int) -> dict[str, Any]:
    """The schema of one key or item of a value with this schema; empty if there is none."""
    if isinstance(part, int):
        return dict(schema.get("items", {}))
    inner = schema.get("properties", {}).get(part) or schema.get("additionalProperties")
    return inner if isinstance(inner, dict) else {}


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
