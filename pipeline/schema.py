"""The JSON Schema of pipeline files, made from the parameter models."""

from __future__ import annotations

from typing import Any

from speckit_memory.config.beside import KEYS, LONGEST_NAME, MODES, MOST_BESIDE, BesideMode
from speckit_memory.config.pipeline_file import BUDGETS_MS, CANDIDATE_SLOTS, SLOTS
from speckit_memory.config.sources import NOTHING
from speckit_memory.pipeline.contracts import SLOT_ROLES
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
        "type": "object",
        "additionalProperties": False,
        "required": ["use"],
        "properties": {key: properties[key] for key in KEYS[mode]},
    }
    what = {
        "shadow": "answers are compared with those of this one",
        "dark_run": "cost is measured and result discarded",
    }
    return {
        "description": f"Pipelines that run beside this one, and whose {what[mode]}.",
        "anyOf": [{"type": "array", "maxItems": MOST_BESIDE, "items": {"anyOf": [source, entry]}}, {"type": "null"}],
    }


def _slot(names: list[str]) -> dict[str, Any]:
    """A list of steps in the place of those inherited, or what is to be different with these."""

    def steps(kind: str, required: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
        refs = ({"$ref": f"#/$defs/{kind}{name}"} | required for name in names)
        return {"type": "array", "items": {"anyOf": [*more, *refs]}}

    whole = {"enum": names}
    added, changed = steps(EDITED, {"required": ["use"]}, whole), steps(EDITED, {"required": ["id"]})
    edits = {
        "add": added | {"description": "Steps to add to the inherited ones, at the end unless they say where."},
        "change": changed | {"description": "What is different with inherited steps, named by 'id'."},
        "remove": {"type": "array", "items": {"type": "string"}, "description": "Ids of inherited steps."},
    }
    return {
        "anyOf": [
            steps("", {}, whole),
            {"type": "object", "additionalProperties": False, "properties": edits},
            {"type": "null"},
        ]
    }


def _edited(step: dict[str, Any]) -> dict[str, Any]:
    return step | {"required": [], "properties": step["properties"] | PLACEMENT}


def _step_schema(entry: Registered, definitions: dict[str, Any]) -> dict[str, Any]:
    params = entry.params.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
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
                "anyOf": [name, {"type": "array", "minItems": 1, "items": name, "uniqueItems": True}],
            },
            "optional": {"type": "boolean", "description": "The step may be skipped; the answer says so."},
            "replaces": {**name, "description": "The id of the step whose place this one takes."},
            **properties,
        },
    }
