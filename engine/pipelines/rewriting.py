"""Changes values of a pipeline file in place, preserving comments, layout and what it leaves open."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from speckit_memory.config.pipelines.document import ConfigDocument
from speckit_memory.config.pipelines.pipeline_file import CANDIDATE_SLOTS, SLOTS, StepEntry
from speckit_memory.config.yaml.reader import MappingEntry, Scalar, YamlMapping, plain, read
from speckit_memory.engine.pipelines.yaml_flow import flow_style
from speckit_memory.errors import Where

Edit = tuple[int, int, str]
"""Start offset, end offset, and the text that replaces this span."""

_TOKEN = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|[^\s,{}\[\]]+')
_IN_FLOW = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|[^,{}\[\]#\n]*[^,{}\[\]#\s]')
_TO_THE_END = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|[^#\n]*[^#\s]')
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""Line breaks of YAML, whose parser reports positions; `str.splitlines` knows further ones."""


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
    page = PositionedText(document.text)
    steps = {step.id: step for step in document.said.written()}
    edits = list(page.named(node, name))
    for step_id, wanted in _values_by_step(overrides).items():
        if step_id not in steps:
            return None
        changed = page.with_parameters(steps[step_id], _changes(present[step_id], wanted))
        if changed is None:
            return None
        edits += changed
    for step_id, lines in remarks.items():
        if step_id not in steps:
            return None
        edits.append(page.remarked(steps[step_id], lines))
    top = "".join(f"# {line}".rstrip() + "\n" for line in heading)
    return (f"{top}\n" if top else "") + page.edited(edits)


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


class PositionedText:
    """A text that is addressed by line and column."""

    def __init__(self, text: str) -> None:
        self._text = text
        # Offsets in characters at which lines begin, and the end of the text.
        self._starts = [0, *(found.end() for found in _BREAK.finditer(text))]
        if self._starts[-1] < len(text):
            self._starts.append(len(text))

    def line(self, number: int) -> int:
        """The offset of a line, from 1; the end of the text for the line after the last."""
        return self._starts[min(number, len(self._starts)) - 1]

    def edited(self, edits: Sequence[Edit]) -> str:
        """The text after all edits, which must not overlap; insertions at one offset keep their order."""
        parts, last = [], 0
        # Stable: edits at one place keep their order, and `last` only grows as long as none overlap.
        for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
            parts += [self._text[last:start], new]
            last = end
        return "".join((*parts, self._text[last:]))

    def named(self, node: YamlMapping, name: str) -> Iterator[Edit]:
        """The edit that sets the pipeline's name, inserted at the top if missing."""
        entry = node.get("pipeline")
        if entry is None:
            start = self.at(node.entries[0].where)
            yield start, start, f"pipeline: {flow_style(name)}\n"
        else:
            yield self._token(entry.value.where, flow_style(name), _TO_THE_END)

    def remarked(self, step: StepEntry, lines: Sequence[str]) -> Edit:
        """An edit that inserts comments above the line on which a step begins."""
        start = self._starts[step.where.line - 1]
        line = self._text[start : self._starts[step.where.line]]
        pad = line[: len(line) - len(line.lstrip())]
        return start, start, "".join(f"{pad}# {remark}\n" for remark in lines)

    def with_parameters(self, step: StepEntry, changes: Mapping[str, Any]) -> list[Edit] | None:
        """Edits that set values of a step; new ones are inserted after the name of the component."""
        edits, new = self._changed(step.params, changes)
        if edits is None or not new:
            return edits
        _, end, _ = self._token(step.places.get("use") or step.places["id"], "", _TOKEN)
        # A flow mapping "{...}" continues on its line, a block mapping on a new one at the column of the step.
        between = ", " if self._text[self.at(step.where)] == "{" else "\n" + " " * (step.where.column - 1)
        return [
            *edits,
            (end, end, "".join(f"{between}{flow_style(key)}: {flow_style(value)}" for key, value in new.items())),
        ]

    def with_values(self, mapping: YamlMapping, key: Where, values: Mapping[str, Any]) -> list[Edit] | None:
        """Edits that set values of the mapping under a key; None if that is impossible.

        A new value is inserted after the nearest value before it in `values` that is present, else at the start: in a
        block below the line of the key.
        """
        edits, new = self._changed(mapping, values)
        if edits is None:
            return None
        written = [entry for name in values if (entry := mapping.get(name))]
        order = list(values)
        for name, value in new.items():
            before = [entry for entry in written if order.index(entry.key) < order.index(name)]
            edits.append(self._following(mapping, before[-1] if before else None, key, {name: value}))
        return edits

    def _following(self, mapping: YamlMapping, before: MappingEntry | None, key: Where, new: Mapping[str, Any]) -> Edit:
        """An edit that inserts an entry after another one, or at the start for None."""
        pair = ", ".join(f"{flow_style(name)}: {flow_style(value)}" for name, value in new.items())
        if self._text[self.at(mapping.where)] == "{":
            if before is None:
                start = self.at(mapping.where) + 1
                return start, start, pair + (", " if mapping.entries else "")
            end = self._token(before.value.where, "", _IN_FLOW)[1]
            return end, end, f", {pair}"
        # The line after the last line of the value, or after the key if the mapping begins there.
        start = self._starts[before.value.where.line if before else key.line]
        line = " " * (mapping.entries[0].where.column - 1) + pair
        # Without a line break at the end of the text, one is put before the new line instead.
        return start, start, f"{line}\n" if _BREAK.match(self._text, start - 1) else f"\n{line}"

    def without(self, mapping: YamlMapping, keys: Collection[str]) -> Iterator[Edit]:
        """Edits that remove scalar values from a mapping; none if nothing else would be left."""
        entries = mapping.entries
        # Place of the last entry that stays; len(entries) if none does, and then nothing is removed.
        kept = max((place for place, entry in enumerate(entries) if entry.key not in keys), default=len(entries))
        flow = self._text[self.at(mapping.where)] == "{"
        for place, entry in enumerate(entries if kept < len(entries) else ()):
            if entry.key not in keys:
                continue
            if not flow:
                yield self._starts[entry.where.line - 1], self._starts[entry.value.where.line], ""
            # Up to the next entry, so that the comma and the blanks after this one go too.
            elif place < kept:
                yield self.at(entry.where), self.at(entries[place + 1].where), ""
            else:  # no later entry stays: remove the comma before this one
                comma = self._text.rfind(",", 0, self.at(entry.where))
                yield comma, self._token(entry.value.where, "", _IN_FLOW)[1], ""

    def _changed(self, mapping: YamlMapping, changes: Mapping[str, Any]) -> tuple[list[Edit] | None, dict[str, Any]]:
        """Edits of values that are present, None if impossible; and the values that are not present."""
        edits: list[Edit] = []
        new: dict[str, Any] = {}
        for key, value in changes.items():
            entry = mapping.get(key)
            if entry is None:
                new[key] = value
            elif isinstance(entry.value, Scalar) and not isinstance(value, dict | list):
                edits.append(self._token(entry.value.where, flow_style(value), _TOKEN))
            elif isinstance(entry.value, YamlMapping) and isinstance(value, dict):
                inner, added = self._changed(entry.value, value)
                if inner is None:
                    return None, {}
                edits += [*inner, *self._added(entry.value, added)]
            else:
                return None, {}
        return edits, new

    def _added(self, mapping: YamlMapping, new: Mapping[str, Any]) -> Iterator[Edit]:
        """Edits that insert entries at the start of a mapping."""
        if not new:
            return
        start = self.at(mapping.where)
        pairs = [f"{flow_style(key)}: {flow_style(value)}" for key, value in new.items()]
        if self._text[start] == "{":
            yield start + 1, start + 1, ", ".join(pairs) + (", " if mapping.entries else "")
        else:
            yield start, start, "".join(pair + "\n" + " " * (mapping.where.column - 1) for pair in pairs)

    def _token(self, where: Where, new: str, form: re.Pattern[str]) -> Edit:
        start = self.at(where)
        found = form.match(self._text, start)
        return start, found.end() if found else start, new

    def at(self, where: Where) -> int:
        """The offset of a position, in characters."""
        return self._starts[where.line - 1] + where.column - 1
