"""Describes invalid arguments of a call: the type found and what is accepted (feature T26)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speckit_memory.errors import Problem, closest, nearest
from speckit_memory.errors.echo import LISTED, abridge
from speckit_memory.errors.synonyms import accepted_synonym

RANGES = frozenset(
    {"greater_than_equal", "less_than_equal", "greater_than", "less_than", "too_long", "too_short", "string_too_short"}
)
FAR = 100_000
"""Bounds from here on are too large to matter to a client; they are not listed."""
TYPE_ERROR = "_type"
"""The suffix of pydantic's error types that concern the type of a value."""
FORMS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}
MEMORY_NAME = "an id (whole number) or a key (text)"
"""The description of a parameter that accepts text or a whole number: such a parameter names a memory."""


def problems_of(tool: str, details: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> list[Problem]:
    """Converts validation errors to problems. Rejected values are left out, since they are content.

    `schema` is the JSON Schema of the parameters with all their bounds.
    """
    accepted = list(schema["properties"])
    # twice the number of problems shown, as unions have several errors per value
    details, further = details[: 2 * LISTED], len(details) - 2 * LISTED
    missing = [str(detail["loc"][0]) for detail in details if detail["type"] == "missing"]
    told = False
    problems = []
    for detail, name, form in _placed(details, schema):
        kind = detail["type"]
        if kind == "extra_forbidden":
            # an unknown name that is no synonym most likely means the missing parameter
            meant = accepted_synonym(name, accepted) or (missing[0] if len(missing) == 1 else closest(name, accepted))
            offer = f"; did you mean '{meant}'?" if meant else "" if told else f"; {nearest(name, accepted)}"
            told = told or not meant  # list the accepted names once
            problems.append(Problem("E033", f"{tool} has no parameter '{name}'{offer}"))
        elif kind == "missing":
            problems.append(Problem("E031", f"{tool} needs the parameter '{name}'"))
        elif kind == "string_too_long":
            code = "E042" if name in ("query", "input") else "E032"
            problems.append(Problem(code, f"'{name}' is too long: {_lowered(detail['msg'])}"))
        elif kind.endswith(TYPE_ERROR) and form:
            problems.append(
                Problem("E030", f"'{name}' must be {_accepted(form)}, not {_describe_value(detail['input'])}")
            )
        else:
            code = "E032" if kind in RANGES else "E030"
            likely = _likely(form, detail["input"]) if kind == "literal_error" else ""
            problems.append(Problem(code, f"'{name}': {_lowered(detail['msg'])}{likely}"))
    if further > 0:
        problems.append(Problem("E030", f"and {further:,} more problems of this kind"))
    return problems


def _placed(
    details: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]
) -> list[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
    """Pairs each error with the name and schema of its value. For a union the validation reports one error per type:
    an error about a value of the right type is preferred, else one type error is kept for all."""
    placed = [(detail, *_place(detail["loc"], schema["properties"])) for detail in details]
    told = {name for detail, name, _ in placed if not detail["type"].endswith(TYPE_ERROR)}
    once = []
    for detail, name, form in placed:
        if detail["type"].endswith(TYPE_ERROR):
            if name in told:
                continue
            told.add(name)
        once.append((detail, name, form))
    return once


def _place(loc: Sequence[str | int], properties: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The dotted name of a location in the arguments, and its schema; {} if there is none."""
    first, *further = loc
    names, form = [abridge(str(first))], _single(properties.get(str(first), {}))
    for part in further:
        if not isinstance(part, int) or "items" not in form:
            break
        names.append(str(part))
        form = _single(form["items"])
    return ".".join(names), form


def _single(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of an optional value without its null alternative."""
    options = [option for option in form.get("anyOf", []) if option != {"type": "null"}]
    return options[0] if len(options) == 1 else form


def _accepted(form: Mapping[str, Any]) -> str:
    """Describes the accepted values, with those bounds that matter to a client."""
    if "anyOf" in form:
        kinds = [option.get("type") for option in form["anyOf"] if option != {"type": "null"}]
        return MEMORY_NAME if set(kinds) == {"string", "integer"} else " or ".join(FORMS[kind] for kind in kinds)
    if "enum" in form:
        return f"one of {', '.join(map(str, form['enum']))}"
    kind = form["type"]
    if kind == "array":
        example = f", such as {_example(form['items'])}" if "items" in form else ""
        return f"{FORMS[kind]} of texts{example}" if form.get("items", {}).get("type") == "string" else FORMS[kind]
    return FORMS[kind] + _bounds(form)


def _example(item: Mapping[str, Any]) -> str:
    one, two = item.get("enum", ["one", "two"])[:2]
    return f'["{one}", "{two}"]'


def _bounds(form: Mapping[str, Any]) -> str:
    least, most = form.get("minimum"), form.get("maximum", FAR)
    if least is None:
        return ""
    return f" from {least} to {most}" if most < FAR else f" from {least} on"


def _describe_value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "a text"
        case int():
            return "a whole number"
        case float():
            return "a number with a fraction"
        case list():
            return "a list"
        case _:
            return "an object"


def _likely(form: Mapping[str, Any], value: object) -> str:
    """Offers the accepted word that is closest to a misspelt one."""
    word = closest(abridge(str(value)).lower(), form["enum"])
    return f"; did you mean '{word}'?" if word else ""


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
