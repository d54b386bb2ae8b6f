"""Changes that a call makes to a pipeline: the last layer of the configuration (feature P2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from speckit_memory.config.pipelines.pipeline_file import StepEntry
from speckit_memory.config.yaml.reader import (
    MappingEntry,
    Node,
    Scalar,
    Sequence,
    YamlMapping,
    merge_mappings,
    plain,
    read,
)
from speckit_memory.errors import Problem, Where, nearest

BY_CALL = "--set "
"""Prefix of positions of values that a call sets."""

Slots = dict[str, tuple[StepEntry, ...]]


class Override(Protocol):
    """One change by a call; a value object, so that equal changes have equal effects."""

    def applied(self, slots: Slots, inactive: tuple[StepEntry, ...], problems: list[Problem]) -> Slots:
        """The active steps after the change. If it is impossible, the reason is appended to `problems`.

        `inactive` are the steps that are not active.
        """
        ...


@dataclass(frozen=True, slots=True)
class ParameterOverride:
    """A value, as YAML text, merged into a step's parameters: `path` is "step.parameter" or "step.parameter.key"."""

    path: str
    text: str

    def applied(self, slots: Slots, inactive: tuple[StepEntry, ...], problems: list[Problem]) -> Slots:
        """The steps with the value merged in; other values stay."""
        where = Where(f"{BY_CALL}{self.path}", 1, 1)
        step_id, *keys = self.path.split(".")
        active = [step for steps in slots.values() for step in steps]
        ids = [step.id for step in active]
        if not keys or step_id not in ids:
            absent = next((step for step in inactive if step.id == step_id), None)
            message = f"no step '{step_id}' to set '{self.path}' on; {nearest(step_id, ids)}"
            if keys and absent:
                message = f"'{self.path}' has no effect: {_why_absent(absent, active)}"
            problems.append(Problem("E030", message, hint="Write step.parameter=value.", where=where))
            return slots
        node, found = read(self.text, where.file)
        problems += found
        if node is None:
            return slots
        # A path that leads into a scalar or list would replace it without notice: reject it instead.
        lost = next(filter(None, (_no_mapping(step, keys, where) for step in active if step.id == step_id)), None)
        if lost:
            problems.append(lost)
            return slots
        said = _nested(keys, node, where)
        return {
            slot: tuple(replace(s, params=merge_mappings(s.params, said)) if s.id == step_id else s for s in steps)
            for slot, steps in slots.items()
        }


@dataclass(frozen=True, slots=True)
class DisabledStep:
    """A disabled step. With `forgotten`, keys, list items and values that name it in other steps are removed too."""

    step: str
    forgotten: bool = False

    def applied(self, slots: Slots, inactive: tuple[StepEntry, ...], problems: list[Problem]) -> Slots:
        """The steps without the disabled one."""
        ids = [step.id for steps in slots.values() for step in steps]
        if self.step not in ids:
            waits = any(step.id == self.step for step in inactive)
            instead = "it is already inactive" if waits else nearest(self.step, ids)
            message = f"no step '{self.step}' to leave out; {instead}"
            problems.append(Problem("E030", message, hint="Give the id of an active step."))
            return slots
        kept = {slot: tuple(step for step in steps if step.id != self.step) for slot, steps in slots.items()}
        if not self.forgotten:
            return kept
        return {
            slot: tuple(replace(step, params=_forgotten(step.params, self.step)) for step in steps)
            for slot, steps in kept.items()
        }


def _forgotten(mapping: YamlMapping, name: str) -> YamlMapping:
    """The mapping without the keys, list items and values equal to this name."""
    kept = (
        replace(entry, value=_forget(entry.value, name))
        for entry in mapping.entries
        if entry.key != name and not (isinstance(entry.value, Scalar) and plain(entry.value) == name)
    )
    return replace(mapping, entries=tuple(kept))


def _forget(node: Node, name: str) -> Node:
    match node:
        case YamlMapping():
            return _forgotten(node, name)
        case Sequence(items=items):
            return replace(node, items=tuple(_forget(item, name) for item in items if plain(item) != name))
    return node


def _nested(keys: Iterable[str], node: Node, where: Where) -> YamlMapping:
    """A mapping with `node` at the end of a path of keys."""
    first, *rest = keys
    return YamlMapping((MappingEntry(first, where, _nested(rest, node, where) if rest else node),), where)


def _no_mapping(step: StepEntry, keys: list[str], where: Where) -> Problem | None:
    """The problem of a path that leads into a scalar or a list, which a nested mapping would silently replace."""
    inside: Node = step.params
    for place, key in enumerate(keys):
        if isinstance(inside, Scalar | Sequence):
            whole = ".".join((step.id, *keys[:place]))
            message = f"'{whole}' is {plain(inside)!r} and has no key '{key}'; set '{whole}' as a whole"
            return Problem("E030", message, hint=f"For example: {whole}={{{key}: 1}}", where=where)
        entry = inside.get(key)
        if entry is None:
            return None
        inside = entry.value
    return None


def _why_absent(step: StepEntry, active: list[StepEntry]) -> str:
    instead = next((other for other in active if other.replaces == step.id), None)
    if instead is None:
        return f"the step '{step.id}' waits for the flag {step.waits_for}"
    flag = f" (flag {instead.waits_for})" if instead.flags else ""
    return f"'{instead.id}'{flag} replaces '{step.id}'; set it on '{instead.id}'"
