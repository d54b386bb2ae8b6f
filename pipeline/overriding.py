"""Single values that a call sets: the last layer of the configuration (feature P2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from speckit_memory.config.merging import merged
from speckit_memory.config.pipeline_file import Step
from speckit_memory.config.yaml_reader import Entry, Node, Scalar, Sequence, plain, read
from speckit_memory.config.yaml_reader import Mapping as YamlMapping
from speckit_memory.errors import Problem, Where, nearest

BY_CALL = "--set "
"""How positions name what a call sets."""


def overridden(
    slots: dict[str, tuple[Step, ...]],
    inactive: tuple[Step, ...],
    overrides: Mapping[str, str],
    problems: list[Problem],
) -> dict[str, tuple[Step, ...]]:
    """The steps with the values that a call sets, by "step.parameter" or "step.parameter.key", laid upon theirs.

    What cannot be set joins the `problems`; `inactive` are the steps that take no part.
    """
    for path, text in overrides.items():
        where = Where(f"{BY_CALL}{path}", 1, 1)
        step_id, *keys = path.split(".")
        active = [step for steps in slots.values() for step in steps]
        ids = [step.id for step in active]
        absent = next((step for step in inactive if step.id == step_id), None)
        if not keys or step_id not in ids:
            message = f"no step '{step_id}' to set '{path}' on; {nearest(step_id, ids)}"
            if keys and absent:
                message = f"'{path}' has no effect: {_why_absent(absent, active)}"
            problems.append(Problem("E030", message, hint="Write step.parameter=value.", where=where))
            continue
        node, found = read(text, where.file)
        problems += found
        if node is None:
            continue
        lost = next(filter(None, (_no_mapping(step, keys, where) for step in active if step.id == step_id)), None)
        if lost:
            problems.append(lost)
            continue
        said = _nested(keys, node, where)
        slots = {
            slot: tuple(replace(s, params=merged(s.params, said)) if s.id == step_id else s for s in steps)
            for slot, steps in slots.items()
        }
    return slots


def _nested(keys: Iterable[str], node: Node, where: Where) -> YamlMapping:
    """`node` at the end of a path of keys."""
    first, *rest = keys
    return YamlMapping((Entry(first, where, _nested(rest, node, where) if rest else node),), where)


def _no_mapping(step: Step, keys: list[str], where: Where) -> Problem | None:
    """That a path leads into a word or a list, which a mapping of one key would replace unsaid."""
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


def _why_absent(step: Step, active: list[Step]) -> str:
    instead = next((other for other in active if other.replaces == step.id), None)
    if instead is None:
        return f"the step '{step.id}' waits for the flag {step.flag}"
    flag = f" (flag {instead.flag})" if instead.flag else ""
    return f"'{instead.id}'{flag} stands in the place of '{step.id}'; set it on '{instead.id}'"
