"""The JSON Schema of pipeline files, made from the parameter models."""

from __future__ import annotations

from typing import Any

from speckit_memory.config.beside import KEYS, LONGEST_NAME, MODES, MOST_BESIDE, BesideMode
from speckit_memory.config.pipeline_file import BUDGETS_MS, CANDIDATE_SLOTS, SLOTS
from speckit_memory.config.sources import NOTHING
from speckit_memory.pipeline.contracts import SLOT_ROLES, Role
from speckit_memory.pipeline.registry import Registered, Registry

EDITED = "edited."
"""How the definitions of steps begin that a file adds or changes; no component has such a name."""
PLACEMENT = {
    "before": {"type": "string", "description": "The id of the step before which this one goes."},
    "after": {"type": "string", "description": "The id of the step after which this one goes."},
}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def file_schema(registry: Registry, presets: list[str]) -> dict[str, Any]:
    """Completion and inline errors for editors; `presets` are the names that `extends` may take."""
    definitions: dict[str, Any] = {}
    for entry in registry:
        definitions[entry.name] = _step_schema(entry, definitions)
        definitions[EDITED + entry.name] = _edited(definitions[entry.name])
    steps = {slot: _slot(registry.names(*roles)) for slot, roles in SLOT_ROLES.items()}
    for slot in ("channels", "fusion"):
        steps[slot]["allOf"][0]["then"]["minItems"] = 1
    fuser = {"enum": registry.names(Role.FUSER)}
    first = _by_type({"string": fuser, "object": {"properties": {"use": fuser}}})
    fusion = steps["fusion"]["allOf"][0]["then"]
    fusion["prefixItems"] = [{"allOf": [first, fusion["items"]]}]
    budget = {"type": "number", "exclusiveMinimum": 0}
    return {
        "$schema": DIALECT,
        "title": "speckit-memory pipeline",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "pipeline": {"type": "string", "description": "The name shown in answers and reports."},
            "description": {"type": "string"},
            "extends": {
                "type": "string",
                "description": "Where what this file leaves out comes from: 'default' unless set, 'none' for nowhere.",
                "examples": [*presets, NOTHING],
            },
            **{key: _beside(mode, presets) for key, mode in MODES.items()},
            "budgets_ms": {
                "type": "object",
                "additionalProperties": False,
                "properties": dict.fromkeys(BUDGETS_MS, budget),
            },
            "candidates": {
                "type": "object",
                "additionalProperties": False,
                "properties": {slot: steps[slot] for slot in CANDIDATE_SLOTS},
            },
            **{slot: steps[slot] for slot in SLOTS if slot not in CANDIDATE_SLOTS},
        },
        "$defs": definitions,
    }


def _beside(mode: BesideMode, presets: list[str]) -> dict[str, Any]:
    """The pipelines that run beside this one."""
    source = {"type": "string", "minLength": 1, "examples": presets}
    properties: dict[str, Any] = {
        "use": source | {"description": "A preset or a file, whose path starts at this one."},
        "sample": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1,
            "description": "The share of queries that it sees; 1 unless set.",
        },
        "interleave": {"type": "boolean", "description": "Mix its answers with those of this pipeline."},
        "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "description": "Its name in reports."},
    }
    entry = {
        "additionalProperties": False,
        "required": ["use"],
        "properties": {key: properties[key] for key in KEYS[mode]},
    }
    what = {
        "shadow": "answers are compared with those of this one",
        "dark_run": "cost is measured and result discarded",
    }
    items = {"type": ["string", "object"], "minLength": 1, "examples": presets, **_by_type({"object": entry})}
    return {
        "description": f"Pipelines that run beside this one, and whose {what[mode]}.",
        "type": ["array", "null"],
        "maxItems": MOST_BESIDE,
        "items": items,
    }


def _slot(names: list[str]) -> dict[str, Any]:
    """A list of steps in the place of those inherited, or what is to be different with these."""
    whole = {"type": "array", "items": _step_of(names, "", ["use"])}
    added = {"type": ["array", "null"], "items": _step_of(names, EDITED, ["use"])}
    changed = {"type": ["array", "null"], "items": _step_of(names, EDITED, [])}
    edits = {
        "add": added | {"description": "Steps to add to the inherited ones, at the end unless they say where."},
        "change": changed | {"description": "What is different with inherited steps, named by 'id'."},
        "remove": {
            "type": ["array", "null"],
            "items": {"type": "string"},
            "description": "Ids of inherited steps.",
        },
    }
    return {
        "type": ["array", "object"],
        **_by_type({"array": whole, "object": {"additionalProperties": False, "properties": edits}}),
    }


def _step_of(names: list[str], kind: str, required: list[str]) -> dict[str, Any]:
    """A step of one of these components, by `use`; where that may be left out, by an `id` that is a component's name.

    Every component is a condition of its own, so that what is wrong is told of the component that is meant, and not
    that none of all of them fits.
    """

    def when(key: str, name: str) -> dict[str, Any]:
        named = {"required": [key], "properties": {key: {"const": name}}}
        if key == "id":
            named["not"] = {"required": ["use"]}
        return {"if": named, "then": {"$ref": f"#/$defs/{kind}{name}"}}

    keys = ["use"] if required else ["use", "id"]
    step: dict[str, Any] = {
        "required": required or ["id"],
        "properties": {"use": {"enum": names}},
        "allOf": [when(key, name) for key in keys for name in names],
    }
    types = ["string", "object"] if required else ["object"]
    return {"type": types, **_by_type({"string": {"enum": names}, "object": step} if required else {"object": step})}


def _by_type(forms: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The form of a value by its type, of which validators name what does not hold."""
    return {"allOf": [{"if": {"type": kind}, "then": form} for kind, form in forms.items()]}


def _told_apart(schema: Any) -> Any:
    """A schema whose alternatives are told apart by their types, wherever these differ."""
    if isinstance(schema, list):
        return [_told_apart(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    told = {key: _told_apart(value) for key, value in schema.items()}
    return told | _apart(told.pop("anyOf")) if isinstance(told.get("anyOf"), list) else told


def _apart(options: list[dict[str, Any]]) -> dict[str, Any]:
    """Alternatives, of which validators name what does not hold of the one with the type of the value."""
    forms = {"object" if "$ref" in option else str(option.get("type")): option for option in options}
    if len(forms) < len(options) or "None" in forms or {"integer", "number"} <= forms.keys():
        return {"anyOf": options}
    return {"type": list(forms), **_by_type(forms)}


def _edited(step: dict[str, Any]) -> dict[str, Any]:
    return step | {"required": [], "properties": step["properties"] | PLACEMENT}


def _step_schema(entry: Registered, definitions: dict[str, Any]) -> dict[str, Any]:
    params = entry.params.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
    params = _told_apart(params)
    definitions.update(params.pop("$defs", {}))
    properties = {
        name: {k: v for k, v in field.items() if k != "title"} for name, field in params.get("properties", {}).items()
    }
    name = {"type": "string", "minLength": 1}
    return {
        "type": "object",
        "description": f"{entry.summary} ({'; '.join(filter(None, (entry.role, ', '.join(entry.about.features))))})",
        "additionalProperties": False,
        "required": ["use"],  # everything else may be inherited
        "properties": {
            "use": {"const": entry.name},
            "id": {"type": "string", "description": "The name of the step; the component's name unless set."},
            "flag": {
                "description": "The step takes part when this flag of flags.yaml is enabled, or one of these flags.",
                **_apart([name, {"type": "array", "minItems": 1, "items": name, "uniqueItems": True}]),
            },
            "optional": {"type": "boolean", "description": "The step may be skipped; the answer says so."},
            "replaces": {**name, "description": "The id of the step whose place this one takes."},
            **properties,
        },
    }
