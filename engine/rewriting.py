"""A pipeline file with some values changed in place: its comments, its layout and what it leaves open stay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from config.errors import Where
from config.pipeline_file import Step, shape
from config.sources import pipeline_text
from config.yaml_reader import Mapping as YamlMapping
from config.yaml_reader import Node, Scalar, plain, read
from engine.flow import flow

Edit = tuple[int, int, str]
"""The text from one offset to another gives way to a new one."""

_TOKEN = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|[^\s,{}\[\]]+')
_TO_THE_END = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|[^#\n]*[^#\s]')


def rewritten(
    source: str,
    overrides: Mapping[str, str],
    present: Mapping[str, Mapping[str, Any]],
    *,
    name: str,
    heading: Sequence[str],
    remarks: Mapping[str, Sequence[str]],
) -> str | None:
    """The text of a pipeline file or preset under another name, with `overrides` ("step.parameter" to YAML text).

    `present` holds the parameters of each step before that, with their defaults: of a mapping only what changes is
    written. `heading` stands at its top and `remarks`, by step id, above the steps, all as comments. None when a value
    cannot be put in its place, as in steps that the file inherits. Raises SpeckitError when there is no text.
    """
    text, file = pipeline_text(source)
    node, _ = read(text, file)
    if not isinstance(node, YamlMapping) or not node.entries:
        return None
    page = _Page(text)
    steps = {step.id: step for slot in shape(node, file)[0].slots.values() for step in slot or ()}
    edits = list(page.named(node, name))
    for path, value in overrides.items():
        step_id, _, key = path.partition(".")
        wanted, _ = read(value, file)
        if step_id not in steps or wanted is None:
            return None
        changed = page.with_parameter(steps[step_id], key, plain(wanted), present[step_id].get(key))
        if changed is None:
            return None
        edits += changed
    for step_id, lines in remarks.items():
        if step_id not in steps:
            return None
        edits.append(page.remarked(steps[step_id], lines))
    top = "".join(f"# {line}".rstrip() + "\n" for line in heading)
    return (f"{top}\n" if top else "") + page.edited(edits)


class _Page:
    """A text whose places are known by line and column."""

    def __init__(self, text: str) -> None:
        self._text = text
        lines = text.splitlines(keepends=True)
        self._starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]

    def edited(self, edits: Sequence[Edit]) -> str:
        """The text after all edits, which do not overlap; what is put in one place stays in order."""
        parts, last = [], 0
        for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
            parts += [self._text[last:start], new]
            last = end
        return "".join((*parts, self._text[last:]))

    def named(self, node: YamlMapping, name: str) -> Iterator[Edit]:
        """The pipeline's name, written first when there is none."""
        entry = node.get("pipeline")
        if entry is None:
            start = self._at(node.entries[0].where)
            yield start, start, f"pipeline: {flow(name)}\n"
        else:
            yield self._token(entry.value.where, flow(name), _TO_THE_END)

    def remarked(self, step: Step, lines: Sequence[str]) -> Edit:
        """Comments above the line on which a step begins."""
        start = self._starts[step.where.line - 1]
        line = self._text[start : self._starts[step.where.line]]
        pad = line[: len(line) - len(line.lstrip())]
        return start, start, "".join(f"{pad}# {remark}\n" for remark in lines)

    def with_parameter(self, step: Step, key: str, value: object, before: object) -> list[Edit] | None:
        """Another value of a parameter; one that is not written follows the name of the component."""
        entry = step.params.get(key)
        if entry is not None:
            return self._changed(entry.value, value, before)
        _, end, _ = self._token(step.places["use"], "", _TOKEN)
        in_flow = self._text[self._at(step.where)] == "{"
        return [(end, end, (", " if in_flow else "\n" + " " * (step.where.column - 1)) + f"{key}: {flow(value)}")]

    def _changed(self, node: Node, value: object, before: object) -> list[Edit] | None:
        """What leads from a written value to another: the parts that differ from `before`."""
        if value == before:
            return []
        if isinstance(node, Scalar) and not isinstance(value, dict | list):
            return [self._token(node.where, flow(value), _TOKEN)]
        if not isinstance(node, YamlMapping) or not isinstance(value, dict) or not isinstance(before, dict):
            return None
        edits: list[Edit] = []
        for key, inner in value.items():
            entry = node.get(key)
            if entry is not None:
                found = self._changed(entry.value, inner, before.get(key))
                if found is None:
                    return None
                edits += found
            elif inner != before.get(key):
                edits.append(self._added(node, key, inner))
        return edits

    def _added(self, node: YamlMapping, key: str, value: object) -> Edit:
        """A new first entry of a mapping."""
        start = self._at(node.where)
        if self._text[start] == "{":
            return start + 1, start + 1, f"{key}: {flow(value)}" + (", " if node.entries else "")
        return start, start, f"{key}: {flow(value)}\n" + " " * (node.where.column - 1)

    def _token(self, where: Where, new: str, form: re.Pattern[str]) -> Edit:
        start = self._at(where)
        found = form.match(self._text, start)
        return start, found.end() if found else start, new

    def _at(self, where: Where) -> int:
        return self._starts[where.line - 1] + where.column - 1
