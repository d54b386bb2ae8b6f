"""The JSON Schema of pipeline files, made from the parameter models."""

from __future__ import annotations

from typing import Any, Literal

from speckit_memory.config.pipelines.pipeline_file import BUDGETS_MS, CANDIDATE_SLOTS, SLOTS
from speckit_memory.config.pipelines.shadow_entries import KEYS, LONGEST_NAME, MODES, MOST_BESIDE, BesideMode
from speckit_memory.config.pipelines.sources import NOTHING
from speckit_memory.pipeline.roles.contracts import SLOT_ROLES, Role
from speckit_memory.pipeline.roles.registry import RegisteredComponent, Registry

EDITED = "edited."
"""Prefix of the definitions of steps that a file adds or changes; no component has such a name."""
PLACEMENT = {
    "before": {"type": "string", "description": "The id of the step before which this one goes."},
    "after": {"type": "string", "description": "The id of the step after which this one goes."},
}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def file_schema(registry: Registry, presets: list[str]) -> dict[str, Any]:
    """The schema that gives editors completion and inline errors; `presets` are suggestions for `extends`."""
    definitions: dict[str, Any] = {}
    for entry in registry:
        definitions[entry.name] = _step_schema(entry, definitions)
        definitions[EDITED + entry.name] = _edited(definitions[entry.name])
    steps = {slot: _slot(slot, registry) for slot in SLOT_ROLES}
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
                "description": "The pipeline to inherit omitted settings from: 'default' unless set, or 'none'.",
                "examples": [*presets, NOTHING],
            },
            **{key: _shadow_schema(mode, presets) for key, mode in MODES.items()},
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


def _shadow_schema(mode: BesideMode, presets: list[str]) -> dict[str, Any]:
    """The schema of the list of shadow or dark-run pipelines."""
    source = {"type": "string", "minLength": 1, "examples": presets}
    properties: dict[str, Any] = {
        "use": source | {"description": "A preset, or the path of a file relative to this one."},
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
        "description": f"Pipelines that run in addition to this one, and whose {what[mode]}.",
        "type": ["array", "null"],
        "maxItems": MOST_BESIDE,
        "items": items,
    }


def _slot(slot: str, registry: Registry) -> dict[str, Any]:
    """A list of steps that replaces the inherited ones, or edits to them."""
    names = registry.names(*SLOT_ROLES[slot])
    step = _step_of(names, "", "use")
    whole: dict[str, Any] = {"type": "array", "items": step}
    if slot in ("channels", "fusion"):
        whole["minItems"] = 1
    if slot == "fusion":
        fuser = {"enum": registry.names(Role.FUSER)}
        # The first step under 'fusion' must be a fuser.
        first = _by_type({"string": fuser, "object": {"properties": {"use": fuser}}})
        whole["prefixItems"] = [{"allOf": [first, step]}]
    added = {"type": ["array", "null"], "items": _step_of(names, EDITED, "use")}
    changed = {"type": ["array", "null"], "items": _step_of(names, EDITED, "id")}
    edits = {
        "add": added | {"description": "Steps to add to the inherited ones, at the end unless they name a place."},
        "change": changed | {"description": "Changes to inherited steps, named by 'id'."},
        "remove": {
            "type": ["array", "null"],
            "items": {"type": "string"},
            "description": "Ids of inherited steps.",
        },
    }
    return _of_types({"array": whole, "object": {"additionalProperties": False, "properties": edits}})


def _step_of(names: list[str], kind: str, by: Literal["use", "id"]) -> dict[str, Any]:
    """A step that has the key `by`; the component follows from `use`, else from an `id` that is a component's name.

    With `by` "use" a step may be the bare name. Every component is a separate condition, so that validators report
    problems of the intended component instead of saying that none matches.
    """

    def when(key: str, name: str) -> dict[str, Any]:
        named = {"required": [key], "properties": {key: {"const": name}}}
        if key == "id":
            named["not"] = {"required": ["use"]}
        return {"if": named, "then": {"$ref": f"#/$defs/{kind}{name}"}}

    whole = {"enum": names}
    step: dict[str, Any] = {
        "required": [by],
        "properties": {"use": whole},
        "allOf": [when(key, name) for key in dict.fromkeys(("use", by)) for name in names],
    }
    return _of_types({"string": whole, "object": step} if by == "use" else {"object": step})


def _of_types(forms: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A value of one of these types, in the form of its type."""
    return {"type": list(forms), **_by_type(forms)}


def _by_type(forms: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The form of a value by its type, so that validators name the violated condition."""
    return {"allOf": [{"if": {"type": kind}, "then": form} for kind, form in forms.items()]}


def _told_apart(schema: Any) -> Any:
    """A schema whose alternatives are selected by type wherever their types differ."""
    if isinstance(schema, list):
        return [_told_apart(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    told = {key: _told_apart(value) for key, value in schema.items()}
    if isinstance(told.get("anyOf"), list):
        told.update(_apart(told.pop("anyOf")))
    return told


def _apart(options: list[dict[str, Any]]) -> dict[str, Any]:
    """Alternatives selected by type, so that validators report problems of the one that has the value's type."""
    forms = {"object" if "$ref" in option else str(option.get("type")): option for option in options}
    if len(forms) < len(options) or "None" in forms or {"integer", "number"} <= forms.keys():
        return {"anyOf": options}
    return _of_types(forms)


def _edited(step: dict[str, Any]) -> dict[str, Any]:
    return step | {"required": [], "properties": step["properties"] | PLACEMENT}


def _step_schema(entry: RegisteredComponent, definitions: dict[str, Any]) -> dict[str, Any]:
    params = _told_apart(entry.params.model_json_schema(by_alias=True, ref_template="#/$defs/{model}"))
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
                "description": "The step is active if this flag of flags.yaml, or one of these flags, is enabled.",
                **_apart([name, {"type": "array", "minItems": 1, "items": name, "uniqueItems": True}]),
            },
            "optional": {"type": "boolean", "description": "The step may be skipped; the answer says so."},
            "replaces": {**name, "description": "The id of the step that this one replaces."},
            **properties,
        },
    }
