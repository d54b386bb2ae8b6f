"""Changes values of a pipeline file in place, preserving comments, layout and what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speckit_memory.config.pipelines.document import ConfigDocument
from speckit_memory.config.pipelines.pipeline_file import CANDIDATE_SLOTS, SLOTS
from speckit_memory.config.yaml.editor import NotInPlaceError, YamlEditor, flow_style
from speckit_memory.config.yaml.reader import YamlMapping, plain, read


def rewritten(
    document: ConfigDocument,
    overrides: Mapping[str, str],
    present: Mapping[str, Mapping[str, Any]],
    *,
    name: str,
    heading: Sequence[str],
    remarks: Mapping[str, Sequence[str]],
) -> str | None:
    """The text of a document with another name and other values.

    Args:
        document: The pipeline file.
        overrides: "step.parameter.key" to YAML text.
        present: The parameters of each step, defaults included; only differences are written.
        name: The new name of the pipeline.
        heading: Comment lines at the top.
        remarks: Comment lines above steps, by step id.

    Returns:
        The text; None if a value cannot be set in place, as for inherited steps, or if the document has no text.
    """
    node = document.node
    if document.text is None or not isinstance(node, YamlMapping) or not node.entries:
        return None
    editor = YamlEditor(document.text)
    steps = {step.id: step for step in document.said.written()}
    changes = {step: _changes(present[step], values) for step, values in _values_by_step(overrides).items()}
    if not {*changes, *remarks} <= steps.keys():
        return None
    if node.get("pipeline"):
        editor.merge(node, {"pipeline": name})
    else:
        editor.add_above(node.entries[0].where, [f"pipeline: {flow_style(name)}"])
    try:
        for step_id, values in changes.items():
            editor.merge(steps[step_id].params, values)
    except NotInPlaceError:
        return None
    for step_id, lines in remarks.items():
        editor.add_above(steps[step_id].where, [f"# {line}".rstrip() for line in lines])
    top = "".join(f"# {line}".rstrip() + "\n" for line in heading)
    return (f"{top}\n" if top else "") + editor.result()


def extending(
    below: str,
    overrides: Mapping[str, str],
    present: Mapping[str, Mapping[str, Any]],
    slots: Mapping[str, str],
    *,
    name: str,
    heading: Sequence[str],
    remarks: Mapping[str, Sequence[str]],
) -> str:
    """The text of a file that extends another one and changes some values.

    Args:
        below: The preset or file to extend.
        overrides: "step.parameter.key" to YAML text.
        present: The parameters of each step, defaults included; only differences are written.
        slots: The slot of each step.
        name: The name of the pipeline.
        heading: Comment lines at the top.
        remarks: Comment lines above steps, by step id.
    """
    lines = [f"# {line}".rstrip() for line in heading]
    lines += [*([""] if lines else []), f"pipeline: {flow_style(name)}", f"extends: {flow_style(below)}"]
    wanted = {step: _changes(present[step], values) for step, values in _values_by_step(overrides).items()}
    inside = ""
    for slot in SLOTS:
        changes = {step: values for step, values in wanted.items() if values and slots[step] == slot}
        if not changes:
            continue
        indent = "  " if slot in CANDIDATE_SLOTS else ""
        if indent and not inside:
            inside = "candidates:"
            lines.append(inside)
        lines += [f"{indent}{slot}:", f"{indent}  change:"]
        for step, values in changes.items():
            lines += [f"{indent}    # {line}".rstrip() for line in remarks.get(step, ())]
            lines.append(f"{indent}    - {flow_style({'id': step, **values})}")
    return "\n".join(lines) + "\n"


def _values_by_step(overrides: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The values to write, by step, as nested mappings."""
    wanted: dict[str, dict[str, Any]] = {}
    for path, text in overrides.items():
        *parts, last = path.split(".")
        inside: dict[str, Any] = wanted
        for part in parts:
            inside = inside.setdefault(part, {})
        node, _ = read(text, path)
        inside[last] = None if node is None else plain(node)
    return wanted


def _changes(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The wanted values that differ from the present ones, key by key."""
    changes: dict[str, Any] = {}
    for key, value in wanted.items():
        before = present.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := _changes(before, value):
                changes[key] = inner
        elif key not in present or value != before:
            changes[key] = value
    return changes
